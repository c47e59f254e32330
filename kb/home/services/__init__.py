"""What does a home do for its owner beside answering: models, sources, packs, notes?"""
