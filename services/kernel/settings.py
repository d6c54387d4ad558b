"""Settings, from the environment only. Composition roots read them; nothing else does."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

_Settings = TypeVar("_Settings", bound=BaseSettings)

Port = Annotated[int, Field(ge=0, le=65535)]
"""A TCP port; 0: any free one."""


def _postgresql(url: SecretStr) -> SecretStr:
    """A database's URL, in whichever of the usual ways it is written."""
    scheme, _, rest = url.get_secret_value().partition("://")
    if not url.get_secret_value():
        return url
    if scheme not in {"postgresql", "postgres", "postgresql+asyncpg"} or not rest:
        raise ValueError("is no postgresql://user@host:port/database")
    return SecretStr(f"postgresql+asyncpg://{rest}")


class BadSettings(Exception):
    """The environment holds a setting that cannot be used; the message says which, in one line."""


class ServiceSettings(BaseSettings):
    """What every service is told. Each field is read from `SABOT_` and its name in capitals."""

    model_config = SettingsConfigDict(env_prefix="SABOT_", frozen=True, extra="ignore")

    cell: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,31}$")] = "main"
    """The cell that the service belongs to."""
    nats_url: str = "nats://127.0.0.1:4222"
    """The log's servers, separated by commas; `tls://host:port` where they prove their names by
    certificates of whom `SSL_CERT_FILE` trusts."""
    nats_user: str = ""
    """The service's NATS user; empty: none."""
    nats_password_file: Path | None = None
    """Holds the user's password."""
    nats_monitor_urls: str = ""
    """Every server's monitoring, `http://host:port`, separated by commas: preflight asks them."""
    log_replicas: Annotated[int, Field(ge=1, le=5)] = 1
    """On how many servers the log is kept; a log on fewer is too weak to take bets."""
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")] = "service"
    """Of this process; replicas that share a data folder need different ones."""
    wallet_address: str = ""
    """Where the table's front door passes calls about accounts on to, `host:port`."""
    limits_address: str = ""
    """Where it passes calls about limits and protection on to."""
    data: Path = Path("data")
    """Folder of this process: projections, witness."""
    snapshots: Annotated[Literal["folder", "bucket"], Field()] = "folder"
    """Where snapshots are: in the data `folder` of each process alone, or also in the cell's
    `bucket` on the log's servers, which `sabot streams apply` makes and every process reads."""
    database_url: Annotated[SecretStr, AfterValidator(_postgresql)] = SecretStr("")
    """Where projections are kept, `postgresql://user@host:port/database`; replicas of a service
    share its tables. Empty: a SQLite file for each in the data folder."""
    database_password_file: Path | None = None
    """Holds the database user's password, where the URL does not."""
    schema_by: Annotated[Literal["self", "job"], Field()] = "self"
    """Who makes the database's tables and brings them up to date: every service by `self`, or a
    `job` (`sabot projections migrate`), for which services wait."""
    token_file: Path | None = None
    """See services.kernel.tokens; needed by whoever serves calls."""
    shoe_key_file: Path | None = None
    """The custodian's keys; unset: `shoe_keys.json` in the data folder, made at the first run."""
    seal_key_file: Path | None = None
    """Audit's keys that sign the log's heads; unset: `seal_keys.json` in the data folder, made at
    the first run."""
    call_key_file: Path | None = None
    """The wallet's keys that sign calls to partners' wallets; unset: `call_keys.json` in the data
    folder, made at the first run."""
    host: str = "127.0.0.1"
    """Where calls are served."""
    port: Port = 0
    """The port for calls; 0: any free one."""
    health_port: Port | None = None
    """The port of health alone, always in plain text, open before the log is read: for probes, see
    services.kernel.health_port; unset: none."""
    metrics_port: Port | None = None
    """The port of Prometheus metrics over HTTP; unset: none."""
    tls_certificate: Path | None = None
    """PEM chain of the server; unset: plain text."""
    tls_key: Path | None = None
    """PEM key of the server."""
    drain_s: Annotated[float, Field(ge=0, le=600)] = 10.0
    """How long running calls may take to finish at SIGTERM, seconds."""
    trace_ratio: Annotated[float, Field(ge=0, le=1)] = 0.01
    """Which part of the calls without a trace of their own begins one."""
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    """The least level that is logged."""
    otlp_endpoint: Annotated[str, Field(validation_alias="OTEL_EXPORTER_OTLP_ENDPOINT")] = ""
    """The collector of traces, by OpenTelemetry's own variable; empty: none is sent."""


def load(settings: type[_Settings]) -> _Settings:
    """Read settings from the environment. Raises BadSettings."""
    try:
        return settings()
    except ValidationError as error:
        prefix = str(settings.model_config.get("env_prefix", ""))
        told = [
            f"{_variable(settings, prefix, problem['loc'])}: {problem['msg']}"
            for problem in error.errors(include_url=False, include_context=False)
        ]
        raise BadSettings("; ".join(told)) from None


def _variable(settings: type[BaseSettings], prefix: str, where: tuple[int | str, ...]) -> str:
    name = str(where[0]) if where else ""
    return f"{prefix}{name}".upper() if name in settings.model_fields else name
