"""What are the settings? Layers of TOML, environment and flags, read once."""

from kb.model.config.load import SettingPlace, load, restricted_settings
from kb.model.config.places import HOME_CONFIGS, user_config
from kb.model.config.project import BYTES_MAX as SETTINGS_BYTES_MAX
from kb.model.config.project import ProjectFiles
from kb.model.config.sections import (
    HOME_SECTIONS,
    ClientSettings,
    CompactSettings,
    ContentSettings,
    CrawlSettings,
    EmbedSettings,
    FetchSettings,
    KbSettings,
    LlmSettings,
    NotebookSettings,
    PackSettings,
    RerankSettings,
    SearchSettings,
    ServeSettings,
    Settings,
    TopicSettings,
)

__all__ = [
    "HOME_CONFIGS",
    "HOME_SECTIONS",
    "SETTINGS_BYTES_MAX",
    "ClientSettings",
    "CompactSettings",
    "ContentSettings",
    "CrawlSettings",
    "EmbedSettings",
    "FetchSettings",
    "KbSettings",
    "LlmSettings",
    "NotebookSettings",
    "PackSettings",
    "ProjectFiles",
    "RerankSettings",
    "SearchSettings",
    "ServeSettings",
    "SettingPlace",
    "Settings",
    "TopicSettings",
    "load",
    "restricted_settings",
    "user_config",
]
