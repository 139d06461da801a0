"""TOML files, variables and flags; the configurations of models and the shipped ones."""

from adatkg_core.settings.model_settings import (
    Config,
    ModelConfig,
    Protocol,
    RecallConfig,
    TrainConfig,
    choose_config,
    config_file,
    config_from_dict,
    environment_overrides,
    load_config,
)
from adatkg_core.settings.setting import about, setting
from adatkg_core.settings.toml_files import (
    config_files,
    load_section,
    parse_value,
    read_file,
    read_section,
    settings_of,
    shipped_configs,
)

__all__ = [
    "Config",
    "ModelConfig",
    "Protocol",
    "RecallConfig",
    "TrainConfig",
    "about",
    "choose_config",
    "config_file",
    "config_files",
    "config_from_dict",
    "environment_overrides",
    "load_config",
    "load_section",
    "parse_value",
    "read_file",
    "read_section",
    "setting",
    "settings_of",
    "shipped_configs",
]
