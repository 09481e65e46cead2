"""The effects of changes in words: what becomes of older checkpoints, and of a signal that is running."""

from __future__ import annotations

_CARRIED = "older ones need `foxhunt migrate`"
CHECKPOINTS = {
    "append": f"{_CARRIED}; it starts anew",
    "retire": "load as before; the place stays reserved",
    "move": f"{_CARRIED}, which carries it by name",
    "rename": f"{_CARRIED}, which carries it to its new name",
    "reshape": "its old values do not fit: `foxhunt migrate --drop` lets it start anew",
    "retype": "its old values do not fit: `foxhunt migrate --drop` lets it start anew",
    "delete": "its values have no place any more: `foxhunt migrate --drop` loses them; retiring keeps them",
    "meaning": "load, with a warning that training does not go on bit-identically",
    "wiring": "load as before",
}
"""Kind of change → what becomes of older checkpoints."""

_SLOTS = {
    "append": "EMA starts at its sentinel and takes over its first observation",
    "retire": "stops; its last value stays in its place",
    "move": "EMA goes on once migrated; unmigrated it would go on from another signal's value",
    "rename": "EMA goes on under its new name once migrated",
    "reshape": "EMA restarts",
    "retype": "EMA restarts",
    "delete": "its history is lost",
}
_TRIPLES = _SLOTS | {
    "append": "EMA restarts: the slot had no producer before",
    "delete": "EMA ends: the slot has no producer any more",
}
_STATE = {
    "append": "starts as in a new run",
    "retire": "is no longer used; its values stay in their place",
    "move": "goes on once migrated",
    "rename": "goes on once migrated",
    "reshape": "restarts as in a new run",
    "retype": "restarts as in a new run",
    "delete": "is lost",
}
_MEANINGS = {
    "producer": "EMA goes on from what the former producer observed",
    "source": "EMA restarts: what writes the slot is another",
    "smoothing": "EMA goes on; observations of exactly 0 are treated otherwise",
    "smoothing all": "every EMA goes on, under another rule",
    "init": "a running one keeps its value; new runs start elsewhere",
    "sentinel": "a slot that was never observed keeps the old sentinel, and counts as observed",
    "floor": "the bound takes the new floor from the next step on",
    "reset": "keeps its value until a reset; then the new policy holds",
    "advance": "keeps its count and advances with another step",
    "launch": "what it computes feeds on otherwise from the next step on",
    "health": "go on; only what happens at NaN and inf changes",
    "system": "all go on, computed otherwise",
}


def place_signal(kind: str, what: str, meaning: str) -> str:
    """What a change of place does to a running signal or tensor; `meaning` is the slot's new meaning."""
    if what == "slot":
        if meaning.startswith(("host", "kernel")):
            return "starts at its init" if kind == "append" else _SLOTS[kind].replace("EMA", "its value")
        return _SLOTS[kind]
    return (_TRIPLES if what == "triple" else _STATE)[kind]


def meaning_signal(what: str, fed: str = "") -> str:
    """What a change of meaning does to running signals; `fed` names those that a changed kernel observes."""
    if what == "template":
        return (
            f"EMA of {fed} goes on from the former formula's values" if fed else "go on, computed otherwise"
        )
    return _MEANINGS[what]
