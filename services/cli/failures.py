"""Which errors the command expects: what they say is for a person, a traceback is not needed."""

from __future__ import annotations

from services.certify.cases import NotReady
from services.cli.acceptance import NotAcceptable
from services.cli.backup import BackupRefused, RestoreCut
from services.cli.bench_load import BenchFailed
from services.cli.capsule_file import NotACapsule
from services.cli.capsule_read import CapsuleRefused
from services.cli.console_child import ConsoleNotStarted
from services.cli.demo_seamless import WalletNotStarted
from services.cli.drill_rules import CannotEvaluate
from services.cli.drill_stage import DrillFailed
from services.cli.find import NothingFound
from services.cli.incident_span import NothingToKeep
from services.cli.inspect_state import PositionUnknown
from services.cli.known_draws import CardUnknown
from services.cli.ledger_log import LedgerRefused
from services.cli.log_source import NoLog
from services.cli.movements import CallFailed
from services.cli.odds_live import NotTold
from services.cli.playthrough import RoundUnknown
from services.cli.private_postgresql import NoPostgresql
from services.cli.prove import NothingToProve
from services.cli.prove_checkpoint import CheckpointUnusable
from services.cli.reconcile import BadBooks
from services.cli.rule_change import RulesRefused
from services.cli.secret_files import SecretUnusable
from services.cli.snapshots import NotBuilt
from services.cli.what_if import WhatIfRefused
from services.console.people import BadPeopleFile
from services.kernel.accepted import AcceptedDamaged
from services.kernel.embedded import FolderInUse, NoteDamaged
from services.kernel.key_file import KeyFileUnusable
from services.kernel.log import LogUnavailable
from services.kernel.nats_process import ServerNotStarted
from services.kernel.object_store import StoreAway
from services.kernel.projections import ProjectionAhead
from services.kernel.reader import LogBroken
from services.kernel.replica import BehaviourUnknown, Diverged
from services.kernel.settings import BadSettings
from services.kernel.store_check import StoreNotTheLog
from services.kernel.store_scan import StoreDamaged, StoreMissing
from services.kernel.streams import StreamMissing, StreamUnfit
from services.kernel.tokens import BadTokenFile
from services.kernel.witness import WitnessDamaged
from services.odds.declared import EdgesWrong
from services.shoe.generator import GeneratorFailed

EXPECTED = (
    AcceptedDamaged,
    BackupRefused,
    BadBooks,
    BadSettings,
    BenchFailed,
    BehaviourUnknown,
    CallFailed,
    CapsuleRefused,
    CardUnknown,
    CheckpointUnusable,
    ConsoleNotStarted,
    Diverged,
    EdgesWrong,
    FolderInUse,
    GeneratorFailed,
    KeyFileUnusable,
    LedgerRefused,
    LogBroken,
    LogUnavailable,
    NoLog,
    NoteDamaged,
    NotACapsule,
    NotBuilt,
    NotAcceptable,
    NotReady,
    NotTold,
    NoPostgresql,
    DrillFailed,
    CannotEvaluate,
    NothingToKeep,
    NothingFound,
    NothingToProve,
    OSError,
    PositionUnknown,
    ProjectionAhead,
    RoundUnknown,
    RestoreCut,
    RulesRefused,
    SecretUnusable,
    ServerNotStarted,
    StoreAway,
    StoreDamaged,
    StoreMissing,
    StoreNotTheLog,
    StreamMissing,
    StreamUnfit,
    BadPeopleFile,
    BadTokenFile,
    WalletNotStarted,
    WhatIfRefused,
    WitnessDamaged,
)
"""Raised where the world is not as it must be, not where the program is wrong."""

DAMAGE = (LogBroken, StoreDamaged, StoreMissing, StoreNotTheLog, StreamMissing)
"""Of these: the log is not what was written."""


def in_one_line(error: BaseException) -> str | None:
    """What to tell of an expected error; None for any other."""
    if not isinstance(error, EXPECTED):
        return None
    words = str(error)
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        words = f"{error.filename}: {error.strerror}"
    told = " ".join(words.split()) or type(error).__name__
    if isinstance(error, DAMAGE):
        told = f"the log is damaged: {told}"
    return told
