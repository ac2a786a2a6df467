# SPDX-License-Identifier: Apache-2.0
"""Cluster specs, and the rules that say what a task of a cluster does. Nothing is connected to."""

from __future__ import annotations

import json
from typing import Annotated, Any, Mapping, Optional, Sequence, Union

from . import _cdist
from ._arguments import Rule, Unfit, check_of, checked
from ._native import Native
from .errors import InvalidArgument

Tasks = Union[Sequence[str], Mapping[int, str]]
"""Of a job: the addresses of tasks 0, 1, ..., or addresses by the tasks' indices."""

TASK_UNSET = int(_cdist.DIST_TASK_UNSET)
"""What C has for a task id of None."""


def _fit_task(given: Any) -> Any:
    if given is None:
        return None
    number = check_of(int)(given)
    if not TASK_UNSET < number < 2**31:
        raise Unfit(given, _A_TASK, right_type=True)
    return number


_A_TASK = "the number of a task or None"
TaskId = Annotated[Optional[int], Rule(_fit_task, _A_TASK)]
"""The index of a task in its job; None: not known."""


@checked
def check_id(task_id: TaskId) -> Optional[int]:
    """A task id of the program's."""
    return task_id


def id_number(task_id: Optional[int]) -> int:
    """A task id as C has it."""
    return TASK_UNSET if task_id is None else task_id


@checked
class ClusterSpec(Native):
    """Jobs by name, each with its tasks' addresses. Immutable.

    spec = ClusterSpec({"worker": ["a:1", "b:2"], "ps": {3: "c:4"}})
    spec.should_save_checkpoint("worker", 0)
    """

    def __init__(self, jobs: Mapping[str, Tasks]) -> None:
        """Of two tasks of one index the later one counts."""
        self._handle = 0
        rows = _cdist.ClusterJobs()
        for name, tasks in jobs.items():
            if isinstance(tasks, Mapping):
                indices, addresses = list(tasks), list(tasks.values())
                if not all(-(2**31) <= index < 2**31 for index in indices):
                    raise InvalidArgument(f"job {name!r} has a task with an index that 32 bits do not hold")
                rows.add(name, addresses, indices, len(addresses))
            else:
                rows.add(name, list(tasks), None, len(tasks))
        self._handle = _cdist.dist_cluster_spec_create(rows.get(), rows.size())

    @classmethod
    def _of(cls, handle: int) -> ClusterSpec:
        spec = cls.__new__(cls)
        spec._handle = handle
        return spec

    @classmethod
    def from_json(cls, text: str) -> ClusterSpec:
        """Of a JSON text, as "cluster" in TF_CONFIG has it."""
        return cls._of(_cdist.dist_cluster_spec_from_json(text))

    @classmethod
    def union(cls, specs: Sequence[ClusterSpec]) -> ClusterSpec:
        """One of several: tasks of a job follow one another, or keep their indices where those are not 0, 1, ..."""
        handles = [spec._handle for spec in specs]
        return cls._of(_cdist.dist_cluster_spec_union(handles, len(handles)))

    def _hand_over(self) -> int:
        """The handle, for whoever ends it."""
        handle, self._handle = self._handle, 0
        return handle

    # The module's own names are gone when the interpreter ends: hence the default.
    def __del__(self, _destroy: Any = _cdist.dist_cluster_spec_destroy) -> None:
        if self._handle:
            _destroy(self._handle)

    # ---- what is in it ---------------------------------------------------------------------------------------------

    @property
    def jobs(self) -> list[str]:
        """The names of the jobs."""
        count = _cdist.dist_cluster_spec_num_jobs(self._handle)
        return [str(_cdist.dist_cluster_spec_job(self._handle, index)) for index in range(count)]

    def num_tasks(self, job: str) -> int:
        """How many tasks a job has."""
        return int(_cdist.dist_cluster_spec_num_tasks(self._handle, job))

    def task_indices(self, job: str) -> list[int]:
        """The indices of a job's tasks, ascending."""
        return list(_cdist.dist_cluster_spec_task_indices(self._handle, job, self.num_tasks(job)))

    def task_address(self, job: str, task: int) -> str:
        """The address of a task."""
        return str(_cdist.dist_cluster_spec_task_address(self._handle, job, task))

    def json(self) -> str:
        """As JSON: a job with tasks 0, 1, ... is a list of addresses, any other an object."""
        return str(_cdist.dist_cluster_spec_json(self._handle))

    def as_dict(self) -> dict[str, Any]:
        """As json(), with whole numbers for the indices of an object."""
        jobs = json.loads(self.json())
        return {
            job: {int(index): address for index, address in tasks.items()} if isinstance(tasks, dict) else tasks
            for job, tasks in jobs.items()
        }

    def __bool__(self) -> bool:
        return bool(_cdist.dist_cluster_spec_num_jobs(self._handle))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ClusterSpec):
            return NotImplemented
        return bool(_cdist.dist_cluster_spec_is_equal(self._handle, other._handle))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<libdist.ClusterSpec {self.json()}>"

    # ---- the rules -------------------------------------------------------------------------------------------------

    def validate(self, task_type: Optional[str], task_id: TaskId) -> None:
        """InvalidArgument where the jobs are not those of training, or there is no such task."""
        _cdist.dist_cluster_validate(self._handle, task_type, id_number(task_id))

    def is_chief(self, task_type: Optional[str], task_id: TaskId) -> bool:
        """Whether a task is the chief: the chief, an evaluator, and worker 0 where there is no chief."""
        return bool(_cdist.dist_cluster_is_chief(self._handle, task_type, id_number(task_id)))

    def collective_leader(self, task_type: Optional[str], task_id: TaskId) -> str:
        """Who leads the collectives, "/job:worker/replica:0/task:0"; "" where nobody does."""
        return str(_cdist.dist_cluster_collective_leader(self._handle, task_type, id_number(task_id)))

    def coordination_leader(self) -> str:
        """Who leads the coordination of the cluster: ps 0, else the chief, else worker 0; "" without any job."""
        return str(_cdist.dist_cluster_coordination_leader(self._handle))

    def worker_count(self, task_type: str) -> int:
        """With how many others, itself counted, a task of that type works."""
        return int(_cdist.dist_cluster_worker_count(self._handle, task_type))

    def id_in_cluster(self, task_type: Optional[str], task_id: TaskId) -> int:
        """The number of a task among those that it works with: the chief is 0 and workers follow."""
        return int(_cdist.dist_cluster_id_in_cluster(self._handle, task_type, id_number(task_id)))

    def should_save_checkpoint(self, task_type: Optional[str], task_id: TaskId) -> bool:
        """Whether a task writes checkpoints."""
        return bool(_cdist.dist_cluster_should_save_checkpoint(self._handle, task_type, id_number(task_id)))

    def should_save_summary(self, task_type: Optional[str], task_id: TaskId) -> bool:
        """Whether a task writes summaries."""
        return bool(_cdist.dist_cluster_should_save_summary(self._handle, task_type, id_number(task_id)))

    def should_evaluate(self, task_type: Optional[str], task_id: TaskId) -> bool:
        """Whether a task evaluates the model."""
        return bool(_cdist.dist_cluster_should_evaluate(self._handle, task_type, id_number(task_id)))
