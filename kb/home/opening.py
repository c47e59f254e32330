"""What does it take to open a home: its place, its settings, and the trust that it has?"""

import os
from pathlib import Path

from kb.model.config import HOME_CONFIGS, ProjectFiles, Settings, load, user_config
from kb.model.config import fingerprint as fingerprints
from kb.model.search import SpaceName
from kb.store.content.layout import HomePaths, is_project_home
from kb.store.trust import TrustDecision, decide_trust, trust_list, trusting_new_store

__all__ = [
    "HOME_CONFIGS",
    "HomePaths",
    "ProjectFiles",
    "Settings",
    "TrustDecision",
    "decide_trust",
    "is_project_home",
    "load",
    "search_fingerprint",
    "trust_list",
    "trusting_new_store",
    "user_config",
]


def search_fingerprint(settings: Settings, home: Path, name: SpaceName) -> str:
    """Equal if another process with this environment would return equal results here.

    Of a home in a database only where both connect as one role, which decides what is seen.
    """
    if HomePaths(home).database is None:
        return fingerprints.search_fingerprint(settings, home, name)
    from kb.store.content.database import libpq_settings

    return fingerprints.search_fingerprint(settings, home, name, libpq_settings(os.environ))
