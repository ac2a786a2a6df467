// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"maps"
	"slices"

	"libdist.example/dist/internal/cdist"
)

// A ClusterSpec describes the processes of a cluster: named jobs, each with the addresses of its tasks. It is
// immutable, and no method connects to an address. A task is identified by its type, which is the name of its
// job, and its id, which is its index in the job. The type "" and the id [TaskUnset] mean that no task is
// given.
type ClusterSpec struct {
	object
}

// A ClusterJob is a job of a cluster: a name and a list of tasks.
type ClusterJob struct {
	Name        string
	Addresses   []string // addresses of the tasks, "host:port"
	TaskIndices []int    // one index per address; nil = 0, 1, ...
}

func ownSpec(native int64, err error) (*ClusterSpec, error) {
	if err != nil {
		return nil, fromNative(err)
	}
	s := &ClusterSpec{}
	s.open(native, cdist.Dist_cluster_spec_destroy, nil)
	return s, nil
}

// NewClusterSpec returns a spec of the given jobs, sorted by name. Each job has the addresses of its tasks 0,
// 1, ... The caller must close the spec.
func NewClusterSpec(jobs map[string][]string) (*ClusterSpec, error) {
	list := make([]ClusterJob, 0, len(jobs))
	for _, name := range slices.Sorted(maps.Keys(jobs)) {
		list = append(list, ClusterJob{Name: name, Addresses: jobs[name]})
	}
	return NewClusterSpecFromJobs(list...)
}

// NewClusterSpecFromJobs returns a spec of the given jobs, in this order. If two jobs have the same name, or two
// tasks of a job the same index, the later one replaces the earlier one. The caller must close the spec.
func NewClusterSpecFromJobs(jobs ...ClusterJob) (*ClusterSpec, error) {
	var u uses
	rows := cdist.NewClusterJobs()
	defer cdist.DeleteClusterJobs(rows)
	for _, job := range jobs {
		if job.TaskIndices != nil && len(job.TaskIndices) != len(job.Addresses) {
			u.fail(newError(ErrInvalidArgument, "job %q has %d addresses and %d indices", job.Name, len(job.Addresses),
				len(job.TaskIndices)))
		}
		name, addresses := u.text(job.Name), u.texts(job.Addresses)
		var indices []int32
		for _, index := range job.TaskIndices {
			indices = append(indices, int32(u.taskID(index)))
		}
		if u.err != nil {
			return nil, u.err
		}
		rows.Add(name, addresses, indices, int64(len(addresses)))
	}
	var out int64
	err := cdist.Dist_cluster_spec_create(rows.Get(), rows.Size(), &out)
	return ownSpec(out, err)
}

// NewClusterSpecFromJSON returns a spec parsed from JSON in the format of "cluster" in TF_CONFIG: {"worker":
// ["a:1"], "ps": {"3": "b:2"}}. The caller must close the spec.
func NewClusterSpecFromJSON(text string) (*ClusterSpec, error) {
	var u uses
	text = u.text(text)
	if u.err != nil {
		return nil, u.err
	}
	var out int64
	err := cdist.Dist_cluster_spec_from_json(text, &out)
	return ownSpec(out, err)
}

// NewUnionClusterSpec merges several specs into one. If a job has the indices 0, 1, ... in all of them, its
// tasks are appended in order. Otherwise, all tasks of the job keep their indices. The caller must close the
// spec.
func NewUnionClusterSpec(specs ...*ClusterSpec) (*ClusterSpec, error) {
	var u uses
	defer u.end()
	handles := make([]int64, len(specs))
	for i, spec := range specs {
		handles[i] = u.spec(spec)
	}
	if u.err != nil {
		return nil, u.err
	}
	var out int64
	err := cdist.Dist_cluster_spec_union(handles, int64(len(handles)), &out)
	return ownSpec(out, err)
}

// Close releases the spec. Resolvers that use it keep it. Closing a nil or closed spec does nothing.
func (s *ClusterSpec) Close() error {
	if s != nil {
		s.close()
	}
	return nil
}

func (u *uses) spec(s *ClusterSpec) int64 {
	if s == nil {
		return 0
	}
	return u.take(&s.object, "cluster spec")
}

// taskID converts a task's number for C. A number that does not fit into 32 bits must not become "not given".
func (u *uses) taskID(id int) int { return u.int32("the task's number", id) }

// givenType converts a task's type for C.
func (u *uses) givenType(taskType string) *string {
	if taskType == "" {
		return nil
	}
	taskType = u.text(taskType)
	return &taskType
}

// NumJobs returns the number of jobs; 0 for a nil or closed spec.
func (s *ClusterSpec) NumJobs() int {
	var u uses
	defer u.end()
	return int(cdist.Dist_cluster_spec_num_jobs(u.spec(s)))
}

// Jobs returns the names of the jobs, in their order. It returns an empty slice for a nil or closed spec.
func (s *ClusterSpec) Jobs() []string {
	var u uses
	defer u.end()
	native := u.spec(s)
	jobs := make([]string, cdist.Dist_cluster_spec_num_jobs(native))
	for i := range jobs {
		jobs[i] = cdist.Dist_cluster_spec_job(native, int64(i))
	}
	return jobs
}

// NumTasks returns the number of tasks of a job.
func (s *ClusterSpec) NumTasks(job string) (int, error) {
	var u uses
	defer u.end()
	native, job := u.spec(s), u.text(job)
	return u.number(func(out *int32) error { return cdist.Dist_cluster_spec_num_tasks(native, job, out) })
}

// number returns the number that a query writes, unless an error has occurred before.
func (u *uses) number(ask func(out *int32) error) (int, error) {
	if u.err != nil {
		return 0, u.err
	}
	var out int32
	err := ask(&out)
	return int(out), fromNative(err)
}

// TaskIndices returns the indices of a job's tasks, in ascending order.
func (s *ClusterSpec) TaskIndices(job string) ([]int, error) {
	n, err := s.NumTasks(job)
	if err != nil {
		return nil, err
	}
	var u uses
	defer u.end()
	native := u.spec(s)
	if u.err != nil {
		return nil, u.err
	}
	return int32List(n, func(room []int32, found *uint64) error {
		return cdist.Dist_cluster_spec_task_indices(native, job, &room[0], int64(n), found)
	})
}

// int32List provides room for n numbers and returns those that were found.
func int32List(n int, write func(room []int32, found *uint64) error) ([]int, error) {
	room := make([]int32, n+1)
	var found uint64
	if err := write(room, &found); err != nil {
		return nil, fromNative(err)
	}
	numbers := make([]int, min(n, int(found)))
	for i := range numbers {
		numbers[i] = int(room[i])
	}
	return numbers, nil
}

// TaskAddress returns the address of a task.
func (s *ClusterSpec) TaskAddress(job string, task int) (address string, err error) {
	var u uses
	defer u.end()
	native, job, id := u.spec(s), u.text(job), u.taskID(task)
	if u.err != nil {
		return "", u.err
	}
	err = fromNative(cdist.Dist_cluster_spec_task_address(native, job, id, &address))
	return address, err
}

// Equal reports whether both specs have the same jobs, in any order, with the same tasks. It returns false if
// one of them is nil or closed.
func (s *ClusterSpec) Equal(other *ClusterSpec) bool {
	var u uses
	defer u.end()
	a, b := u.spec(s), u.spec(other)
	return u.err == nil && cdist.Dist_cluster_spec_is_equal(a, b) != 0
}

// JSON returns the spec as JSON, in the form of TensorFlow's as_dict(): a job with the tasks 0, 1, ... is a
// list of addresses, any other job is an object. It returns "" for a nil or closed spec.
func (s *ClusterSpec) JSON() string {
	var u uses
	defer u.end()
	return cdist.Dist_cluster_spec_json(u.spec(s))
}

// String returns the same text as [ClusterSpec.JSON].
func (s *ClusterSpec) String() string { return s.JSON() }

// rule evaluates a rule about a task.
func (s *ClusterSpec) rule(taskType string, taskID int,
	ask func(native int64, taskType *string, taskID int, out *int32) error) (int, error) {
	var u uses
	defer u.end()
	native, given, id := u.spec(s), u.givenType(taskType), u.taskID(taskID)
	return u.number(func(out *int32) error { return ask(native, given, id, out) })
}

func (s *ClusterSpec) says(taskType string, taskID int,
	ask func(native int64, taskType *string, taskID int, out *int32) error) (bool, error) {
	answer, err := s.rule(taskType, taskID, ask)
	return answer != 0, err
}

// Validate returns an error if the cluster is not suitable for training or if the task does not belong to it.
// The checks are those of TensorFlow.
func (s *ClusterSpec) Validate(taskType string, taskID int) error {
	_, err := s.rule(taskType, taskID, func(native int64, taskType *string, taskID int, _ *int32) error {
		return cdist.Dist_cluster_validate(native, taskType, taskID)
	})
	return err
}

// IsChief reports whether a task is the chief. This is true for the task of job "chief", for an evaluator,
// and for worker 0 if the cluster has no chief.
func (s *ClusterSpec) IsChief(taskType string, taskID int) (bool, error) {
	return s.says(taskType, taskID, cdist.Dist_cluster_is_chief)
}

// CollectiveLeader returns the task that leads the collectives, such as "/job:worker/replica:0/task:0": the
// chief, or worker 0 if there is no chief. It returns "" for an evaluator and for an empty cluster.
func (s *ClusterSpec) CollectiveLeader(taskType string, taskID int) (string, error) {
	var u uses
	defer u.end()
	native, given, id := u.spec(s), u.givenType(taskType), u.taskID(taskID)
	return u.address(func(room []byte) error {
		return cdist.Dist_cluster_collective_leader(native, given, id, room, int64(len(room)))
	})
}

// address returns the text that a query writes, unless an error has occurred before.
func (u *uses) address(ask func(room []byte) error) (string, error) {
	if u.err != nil {
		return "", u.err
	}
	return textIn(make([]byte, MaxAddressBytes), ask)
}

// CoordinationLeader returns the task that leads the coordination of the cluster: ps 0, or else the chief, or
// else worker 0. It returns "" for an empty cluster.
func (s *ClusterSpec) CoordinationLeader() (string, error) {
	var u uses
	defer u.end()
	native := u.spec(s)
	return u.address(func(room []byte) error {
		return cdist.Dist_cluster_coordination_leader(native, room, int64(len(room)))
	})
}

// WorkerCount returns the number of tasks that work together with a task of the given type, including itself.
func (s *ClusterSpec) WorkerCount(taskType string) (int, error) {
	return s.rule(taskType, TaskUnset, func(native int64, taskType *string, _ int, out *int32) error {
		return cdist.Dist_cluster_worker_count(native, taskType, out)
	})
}

// IDInCluster returns the number of a task among the tasks that it works with: the chief is 0, and the
// workers follow.
func (s *ClusterSpec) IDInCluster(taskType string, taskID int) (int, error) {
	return s.rule(taskType, taskID, cdist.Dist_cluster_id_in_cluster)
}

// ShouldSaveCheckpoint reports whether a task writes checkpoints. The chief does; see [ClusterSpec.IsChief].
func (s *ClusterSpec) ShouldSaveCheckpoint(taskType string, taskID int) (bool, error) {
	return s.says(taskType, taskID, cdist.Dist_cluster_should_save_checkpoint)
}

// ShouldSaveSummary reports whether a task writes summaries. The result is that of
// [ClusterSpec.ShouldSaveCheckpoint].
func (s *ClusterSpec) ShouldSaveSummary(taskType string, taskID int) (bool, error) {
	return s.says(taskType, taskID, cdist.Dist_cluster_should_save_summary)
}

// ShouldEvaluate reports whether a task evaluates the model: an evaluator does; if the cluster has no
// evaluator, the task that writes checkpoints does.
func (s *ClusterSpec) ShouldEvaluate(taskType string, taskID int) (bool, error) {
	return s.says(taskType, taskID, cdist.Dist_cluster_should_evaluate)
}
