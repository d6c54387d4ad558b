"""What the console is told, from the environment only."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from services.kernel.settings import Port

IDLE_S = 300.0
"""After so long without a key or a touch a session locks itself."""


class ConsoleSettings(BaseSettings):
    """Each field is read from `SABOT_CONSOLE_` and its name in capitals. Where the log is, which
    cell it is and which data folder is used, `services.kernel.settings` says."""

    model_config = SettingsConfigDict(env_prefix="SABOT_CONSOLE_", frozen=True, extra="ignore")

    host: str = "127.0.0.1"
    """Where pages are served."""
    port: Port = 7480
    """The port of pages; 0: any free one."""
    fleet: str = "127.0.0.1:7400"
    """Where services take calls, `host:port`."""
    addresses: dict[str, str] = {}
    """By service, where it takes calls if not there: `{"audit": "audit:7400"}`. With `tls:` before
    it the call goes over TLS."""
    ca_file: Path | None = None
    """PEM certificates that services' own are checked by; unset: the system's."""
    tls_name: str = ""
    """The name that services' certificates are for, where that is not their address's."""
    people_file: Path | None = None
    """Who may sign in; unset: `console_people.json` in the data folder."""
    token_file: Path | None = None
    """The console's own bearer token, role `console`, with which it tells audit of wrong passwords
    and of pages read; unset: it tells nobody."""
    idle_s: Annotated[float, Field(gt=0, le=3600)] = IDLE_S
    """After how many seconds without a key or a touch a session locks itself."""
    secure: bool = False
    """Whether browsers reach it over TLS: cookies are then sent over TLS only."""
