"""Where an eager step waits for the device: what a capture would refuse, by name and beforehand."""

import contextlib
import os
import sysconfig
import traceback

import torch

KEPT_PLACES = 8  # the first ones of an arm; a program with more has to mend these first
# Frames of PyTorch, of Python itself and of this file are not where somebody would look.
_PASSED_OVER = (os.path.dirname(torch.__file__), sysconfig.get_paths()["stdlib"], "<", __file__)


class HostWaits:
    """The waits of the steps of one arm. `captured`: names of the functions whose calls the graphs
    of the case are captured from; None: the whole step is captured. Used from one thread."""

    def __init__(self, device, captured):
        self._device, self._captured = device, captured
        self._steps, self._places = 0, {}  # (place, captured) -> how often

    @contextlib.contextmanager
    def watched(self):
        """A step, in which waits are noted."""
        self._steps += 1
        with self._device.waits_told(self._note):
            yield

    def _note(self) -> None:
        frames = [frame for frame in traceback.extract_stack() if frame.filename != __file__]
        inside = self._captured is None or any(frame.name in self._captured for frame in frames)
        own = [frame for frame in frames if not frame.filename.startswith(_PASSED_OVER)
               and f"{os.sep}device{os.sep}" not in frame.filename]
        place = f"{os.path.basename(own[-1].filename)}:{own[-1].lineno} {own[-1].name}"
        self._places[place, inside] = self._places.get((place, inside), 0) + 1

    def line(self) -> dict:
        """The fields of the line `host_waits`, besides the arm."""
        # Those that are captured first, because the others are only context.
        places = sorted(self._places.items(), key=lambda one: not one[0][1])
        return {"steps": self._steps,
                "waits": [{"place": place, "times": times, "captured": captured}
                          for (place, captured), times in places[:KEPT_PLACES]]}
