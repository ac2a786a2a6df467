# SPDX-License-Identifier: Apache-2.0
"""Cluster specs, and the rules that determine what a task of a cluster does. No connections are opened."""

from __future__ import annotations

import json
from typing import Annotated, Any, Mapping, Optional, Sequence, Union

from . import _cdist
from ._arguments import Rule, Unfit, check_of, checked
from ._native import Native
from .errors import InvalidArgument

Tasks = Union[Sequence[str], Mapping[int, str]]
"""The tasks of a job: addresses of tasks 0, 1, ..., or a mapping from indices to addresses."""

TASK_UNSET = int(_cdist.DIST_TASK_UNSET)
"""The task id that stands for None in C."""


def _fit_task(given: Any) -> Any:
    if given is None:
        return None
    number = check_of(int)(given)
    if not TASK_UNSET < number < 2**31:
        raise Unfit(given, _A_TASK, right_type=True)
    return number


_A_TASK = "the number of a task or None"
TaskId = Annotated[Optional[int], Rule(_fit_task, _A_TASK)]
"""Index of a task in its job; None = not known."""


@checked
def check_id(task_id: TaskId) -> Optional[int]:
    """Checks a task id that your code returned."""
    return task_id


def id_number(task_id: Optional[int]) -> int:
    """Converts a task id for C."""
    return TASK_UNSET if task_id is None else task_id


@checked
class ClusterSpec(Native):
    """The jobs of a cluster and the addresses of their tasks. Immutable.

        spec = ClusterSpec({"worker": ["a:1", "b:2"], "ps": {3: "c:4"}})
        spec.should_save_checkpoint("worker", 0)
    """

    def __init__(self, jobs: Mapping[str, Tasks]) -> None:
        """jobs: job names and their tasks. If two tasks have the same index, the later one replaces the earlier one."""
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
        """Creates a spec from JSON, in the format of "cluster" in TF_CONFIG."""
        return cls._of(_cdist.dist_cluster_spec_from_json(text))

    @classmethod
    def union(cls, specs: Sequence[ClusterSpec]) -> ClusterSpec:
        """Merges several specs into one.

        If a job has indices 0, 1, ... in all of the specs, its tasks are appended in order. Otherwise all its tasks
        keep their indices.
        """
        handles = [spec._handle for spec in specs]
        return cls._of(_cdist.dist_cluster_spec_union(handles, len(handles)))

    def _hand_over(self) -> int:
        """Returns the handle and transfers its ownership to the caller."""
        handle, self._handle = self._handle, 0
        return handle

    # The default keeps the function: the names of the module are gone when the interpreter exits.
    def __del__(self, _destroy: Any = _cdist.dist_cluster_spec_destroy) -> None:
        if self._handle:
            _destroy(self._handle)

    # ---- jobs and tasks ----------------------------------------------------------------------------------------------

    @property
    def jobs(self) -> list[str]:
        """The names of the jobs."""
        count = _cdist.dist_cluster_spec_num_jobs(self._handle)
        return [str(_cdist.dist_cluster_spec_job(self._handle, index)) for index in range(count)]

    def num_tasks(self, job: str) -> int:
        """Returns the number of tasks of a job."""
        return int(_cdist.dist_cluster_spec_num_tasks(self._handle, job))

    def task_indices(self, job: str) -> list[int]:
        """Returns the indices of a job's tasks, in ascending order."""
        return list(_cdist.dist_cluster_spec_task_indices(self._handle, job, self.num_tasks(job)))

    def task_address(self, job: str, task: int) -> str:
        """Returns the address of a task."""
        return str(_cdist.dist_cluster_spec_task_address(self._handle, job, task))

    def json(self) -> str:
        """Returns the spec as JSON. A job with tasks 0, 1, ... becomes a list of addresses, any other job an object."""
        return str(_cdist.dist_cluster_spec_json(self._handle))

    def as_dict(self) -> dict[str, Any]:
        """Returns the spec as a dictionary, like json(), with integers as the keys of tasks."""
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

    # ---- rules -------------------------------------------------------------------------------------------------------

    def validate(self, task_type: Optional[str], task_id: TaskId) -> None:
        """Checks that a cluster is suitable for training and that a task belongs to it.

        Raises InvalidArgument if not.
        """
        _cdist.dist_cluster_validate(self._handle, task_type, id_number(task_id))

    def is_chief(self, task_type: Optional[str], task_id: TaskId) -> bool:
        """Returns whether a task is the chief.

        This is true for the task of job "chief", for an evaluator, and for worker 0 if the cluster has no chief.
        """
        return bool(_cdist.dist_cluster_is_chief(self._handle, task_type, id_number(task_id)))

    def collective_leader(self, task_type: Optional[str], task_id: TaskId) -> str:
        """Returns the task that leads the collectives, for example "/job:worker/replica:0/task:0"; "" if there is none.

        It is the chief, or worker 0 if there is no chief. An empty cluster and an evaluator have no leader.
        """
        return str(_cdist.dist_cluster_collective_leader(self._handle, task_type, id_number(task_id)))

    def coordination_leader(self) -> str:
        """Returns the task that leads the coordination of the cluster: ps 0, or else the chief, or else worker 0.

        For an empty cluster it returns "".
        """
        return str(_cdist.dist_cluster_coordination_leader(self._handle))

    def worker_count(self, task_type: str) -> int:
        """Returns the number of tasks that work together with a task of this type, including itself."""
        return int(_cdist.dist_cluster_worker_count(self._handle, task_type))

    def id_in_cluster(self, task_type: Optional[str], task_id: TaskId) -> int:
        """Returns the number of a task among the tasks that it works with: the chief is 0, and the workers follow."""
        return int(_cdist.dist_cluster_id_in_cluster(self._handle, task_type, id_number(task_id)))

    def should_save_checkpoint(self, task_type: Optional[str], task_id: TaskId) -> bool:
        """Returns whether a task writes checkpoints: the chief does, and so does the only process of an empty cluster.
        """
        return bool(_cdist.dist_cluster_should_save_checkpoint(self._handle, task_type, id_number(task_id)))

    def should_save_summary(self, task_type: Optional[str], task_id: TaskId) -> bool:
        """Returns whether a task writes summaries; the answer is that of should_save_checkpoint()."""
        return bool(_cdist.dist_cluster_should_save_summary(self._handle, task_type, id_number(task_id)))

    def should_evaluate(self, task_type: Optional[str], task_id: TaskId) -> bool:
        """Returns whether a task evaluates the model.

        An evaluator does. If the cluster has no evaluator, the task that writes checkpoints does.
        """
        return bool(_cdist.dist_cluster_should_evaluate(self._handle, task_type, id_number(task_id)))
