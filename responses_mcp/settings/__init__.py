"""Settings, from the command line, the environment, one YAML file and defaults.

`load_settings` reads them once, at start; everything after that receives a frozen `Settings`. Importing this
package and loading without a file costs no YAML, no HTTP and no Trio, because clients wait for the first answer.
The other sections of `Settings` are in `responses_mcp.settings.model`.
"""

from responses_mcp.settings.load import LoadedSettings as LoadedSettings
from responses_mcp.settings.load import load_settings as load_settings
from responses_mcp.settings.model import ManualsSettings as ManualsSettings
from responses_mcp.settings.model import OpenAISettings as OpenAISettings
from responses_mcp.settings.model import Profile as Profile
from responses_mcp.settings.model import RequestSettings as RequestSettings
from responses_mcp.settings.model import ServerSettings as ServerSettings
from responses_mcp.settings.model import Settings as Settings
from responses_mcp.settings.report import show_config as show_config
