"""What does it take to open a home: its place, its settings, and the trust that it has?"""

from kb.model.config import HOME_CONFIGS, ProjectFiles, Settings, load, user_config
from kb.model.config.fingerprint import search_fingerprint
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
