"""`trainer.signals`: the named slots of the ISV bus, read as last published, set for the next step."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from foxhunt.backend.plan import Plan, Slot
from foxhunt.diagnostics import TrainerError, fail
from foxhunt.runtime.views import unknown

Value = float | NDArray[np.float32]
_ELEMENT = re.compile(r"(.+)\[(\d+)\]")


class Signals(Mapping[str, Value]):
    """Slots by name, or one element of a run by `"NAME[i]"`.

    Reading gives what the newest finished step published, without waiting: a float, or float32 [count] for
    a run of slots. Setting is for `source: host` slots; the value holds from the next enqueued step on.
    """

    def __init__(
        self,
        plan: Plan,
        published: Callable[[], NDArray[np.float32]],
        check_open: Callable[[], None] = lambda: None,
    ) -> None:
        """`published` gives the newest whole ISV [isv_total]; `check_open` raises if setting is too late."""
        self._slots = {slot.name: slot for slot in plan.slots}
        self._published, self._check_open = published, check_open
        hosts = [slot for slot in plan.slots if slot.source == "host"]
        starts = np.cumsum([0, *(slot.count for slot in hosts)])
        self._columns = {slot.name: int(start) for slot, start in zip(hosts, starts, strict=False)}
        self.host_values: NDArray[np.float32] = np.zeros(int(starts[-1]), np.float32)
        """One row of the ingest ring: the elements of all host slots in declaration order."""
        for slot in hosts:
            self._host(slot)[:] = slot.init

    def __getitem__(self, name: str) -> Value:
        """The published value. Raises TrainerError FH540 for an unknown name."""
        slot, element = self._find(name)
        isv = self._published()
        if element is not None or slot.count == 1:
            return float(isv[slot.index + (element or 0)])
        return isv[slot.index : slot.index + slot.count].copy()

    def __setitem__(self, name: str, value: ArrayLike) -> None:
        """Set a host slot; one number sets every element of a run.

        Raises TrainerError for an unknown slot (FH540), one that the program itself writes (FH541), a value
        that is not finite numbers of the slot's count (FH542), or a closed trainer (FH545).
        """
        self._check_open()
        slot, element = self._find(name)
        if slot.source != "host":
            writer = "a producer" if slot.source == "producer" else "a kernel"
            help = f"Host slots: {', '.join(self._columns) or 'none'}."
            raise fail(
                TrainerError, "FH541", f"slot {slot.name} is written by {writer}, not by the host", help=help
            )
        target = self._host(slot) if element is None else self._host(slot)[element : element + 1]
        target[:] = _finite(name, value, len(target))

    def __iter__(self) -> Iterator[str]:
        """Slot names in declaration order."""
        return iter(self._slots)

    def __len__(self) -> int:
        """How many slots have a name."""
        return len(self._slots)

    def take_from(self, isv: NDArray[np.float32]) -> None:
        """Make the host's values those of a restored ISV."""
        for name in self._columns:
            slot = self._slots[name]
            self._host(slot)[:] = isv[slot.index : slot.index + slot.count]

    def put_into(self, isv: NDArray[np.float32]) -> None:
        """Write the host's values, also those that no step has seen yet, into an ISV."""
        for name in self._columns:
            slot = self._slots[name]
            isv[slot.index : slot.index + slot.count] = self._host(slot)

    def reset(self, policy: str) -> None:
        """Put the host slots of a reset policy back to their first value."""
        for name in self._columns:
            if self._slots[name].reset == policy:
                self._host(self._slots[name])[:] = self._slots[name].init

    def _host(self, slot: Slot) -> NDArray[np.float32]:
        start = self._columns[slot.name]
        return self.host_values[start : start + slot.count]

    def _find(self, name: str) -> tuple[Slot, int | None]:
        if not isinstance(name, str):
            raise unknown("FH540", "slot", name, self._slots)
        match = _ELEMENT.fullmatch(name)
        slot = self._slots.get(match[1] if match else name)
        if slot is None:
            raise unknown("FH540", "slot", name, self._slots)
        if match is None:
            return slot, None
        if int(match[2]) >= slot.count:
            raise fail(TrainerError, "FH540", f"slot {slot.name} has {slot.count} elements, so no {name}")
        return slot, int(match[2])


def _finite(name: str, value: ArrayLike, count: int) -> NDArray[np.float32]:
    try:
        with np.errstate(over="ignore"):
            array = np.asarray(value, np.float64).astype(np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        raise fail(TrainerError, "FH542", f"slot {name} takes numbers, not {value!r:.60}") from error
    if array.shape not in ((), (count,)):
        raise fail(TrainerError, "FH542", f"slot {name} takes {count} numbers, not shape {list(array.shape)}")
    if not np.isfinite(array).all():
        raise fail(TrainerError, "FH542", f"slot {name} takes finite float32 numbers, not {value!r:.60}")
    return array
