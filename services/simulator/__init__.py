"""The whole fleet in one process, under virtual time, on a log that fails on demand.

The kernel and the cores are the real ones; only the log, the clock and chance are simulated.

    virtual_time, store     time that jumps; a log's server that is watched, lost and restored
    releases, fleet         two releases of the cores; machines that crash and are started again
    world, asking           what callers can know; how they ask, and ask again
    players, operators      who uses the fleet, and who runs it
    director, chaos         what happens in the gaps of the pipeline; what goes wrong at any time
    facts, audit_*, auditor the final log, held against the invariants and a ledger of its own
    simulation, campaign    one seed; many
"""
