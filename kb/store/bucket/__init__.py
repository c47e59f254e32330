"""How are objects kept in a bucket? Over the API of S3, which many servers speak."""
