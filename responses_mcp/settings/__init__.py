"""Settings: what the server is told, from the command line, the environment, one YAML file and defaults.

`load_settings` reads them once, at start; everything after that receives a frozen `Settings`. Importing this
package and loading without a file costs no YAML, no HTTP and no Trio, because clients wait for the first answer.
"""

from responses_mcp.settings.load import LoadedSettings, load_settings
from responses_mcp.settings.model import (
    EFFORTS,
    VERBOSITIES,
    CacheSettings,
    FindSettings,
    LexicalSettings,
    ManualsSettings,
    OpenAISettings,
    PolicySettings,
    Profile,
    RequestSettings,
    SearchDefaults,
    SearchSettings,
    ServerSettings,
    Settings,
    SystemPolicy,
    TraceSettings,
)
from responses_mcp.settings.report import show_config

__all__ = [
    "EFFORTS",
    "VERBOSITIES",
    "CacheSettings",
    "FindSettings",
    "LexicalSettings",
    "LoadedSettings",
    "ManualsSettings",
    "OpenAISettings",
    "PolicySettings",
    "Profile",
    "RequestSettings",
    "SearchDefaults",
    "SearchSettings",
    "ServerSettings",
    "Settings",
    "SystemPolicy",
    "TraceSettings",
    "load_settings",
    "show_config",
]
