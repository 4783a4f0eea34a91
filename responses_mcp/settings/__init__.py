"""Settings, from the command line, the environment, one YAML file and defaults.

`load_settings` reads them once, at start; everything after that receives a frozen `Settings`. Importing this
package and loading without a file costs no YAML, no HTTP and no Trio, because clients wait for the first answer.
"""

from responses_mcp.settings.load import LoadedSettings as LoadedSettings
from responses_mcp.settings.load import load_settings as load_settings
from responses_mcp.settings.model import EFFORTS as EFFORTS
from responses_mcp.settings.model import VERBOSITIES as VERBOSITIES
from responses_mcp.settings.model import CacheSettings as CacheSettings
from responses_mcp.settings.model import EmbeddingsSettings as EmbeddingsSettings
from responses_mcp.settings.model import FindSettings as FindSettings
from responses_mcp.settings.model import LexicalSettings as LexicalSettings
from responses_mcp.settings.model import LimitSettings as LimitSettings
from responses_mcp.settings.model import LocaleSettings as LocaleSettings
from responses_mcp.settings.model import ManualsSettings as ManualsSettings
from responses_mcp.settings.model import ModelPrice as ModelPrice
from responses_mcp.settings.model import OpenAISettings as OpenAISettings
from responses_mcp.settings.model import PolicySettings as PolicySettings
from responses_mcp.settings.model import PrivacySettings as PrivacySettings
from responses_mcp.settings.model import Profile as Profile
from responses_mcp.settings.model import RequestSettings as RequestSettings
from responses_mcp.settings.model import ResearchSettings as ResearchSettings
from responses_mcp.settings.model import SearchDefaults as SearchDefaults
from responses_mcp.settings.model import SearchSettings as SearchSettings
from responses_mcp.settings.model import ServerSettings as ServerSettings
from responses_mcp.settings.model import Settings as Settings
from responses_mcp.settings.model import SystemPolicy as SystemPolicy
from responses_mcp.settings.model import UsageSettings as UsageSettings
from responses_mcp.settings.report import show_config as show_config
