// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"maps"
	"slices"

	"libdist.example/dist/internal/cdist"
)

// ClusterSpec says which processes there are: jobs by name, each with its tasks' addresses. It does not change, and
// nothing is connected to. A task is named by its type, which is its job's name, and its id, which is its index there; ""
// and TaskUnset are none.
type ClusterSpec struct {
	object
}

// ClusterJob is a job: some tasks that do the same.
type ClusterJob struct {
	Name        string
	Addresses   []string // of its tasks, "host:port"
	TaskIndices []int    // as many as Addresses; nil: 0, 1, ...
}

func ownSpec(native int64, err error) (*ClusterSpec, error) {
	if err != nil {
		return nil, fromNative(err)
	}
	s := &ClusterSpec{}
	s.open(native, cdist.Dist_cluster_spec_destroy, nil)
	return s, nil
}

// NewClusterSpec makes a spec of jobs, each with the addresses of its tasks 0, 1, ..., in the order of their names.
func NewClusterSpec(jobs map[string][]string) (*ClusterSpec, error) {
	list := make([]ClusterJob, 0, len(jobs))
	for _, name := range slices.Sorted(maps.Keys(jobs)) {
		list = append(list, ClusterJob{Name: name, Addresses: jobs[name]})
	}
	return ClusterSpecFromJobs(list...)
}

// ClusterSpecFromJobs makes a spec of jobs, in their order. Of two jobs of one name, and of two tasks of one index, the
// later one counts.
func ClusterSpecFromJobs(jobs ...ClusterJob) (*ClusterSpec, error) {
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

// ClusterSpecFromJSON makes a spec of a JSON text, as "cluster" in TF_CONFIG has it: {"worker": ["a:1"], "ps": {"3": "b:2"}}.
func ClusterSpecFromJSON(text string) (*ClusterSpec, error) {
	var u uses
	text = u.text(text)
	if u.err != nil {
		return nil, u.err
	}
	var out int64
	err := cdist.Dist_cluster_spec_from_json(text, &out)
	return ownSpec(out, err)
}

// ClusterSpecUnion makes one spec of several. The tasks of a job that has indices 0, 1, ... in all of them follow one
// another; where it has other indices in one of them its tasks keep theirs.
func ClusterSpecUnion(specs ...*ClusterSpec) (*ClusterSpec, error) {
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

// Close gives the spec up; resolvers that have it go on. Closing twice, and nil, are fine.
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

// taskID is a task's number as C has it. One that 32 bits do not hold must not become "not given".
func (u *uses) taskID(id int) int { return u.int32("the task's number", id) }

// givenType is a task's type as C has it.
func (u *uses) givenType(taskType string) *string {
	if taskType == "" {
		return nil
	}
	taskType = u.text(taskType)
	return &taskType
}

// NumJobs is the number of jobs; 0 for nil and for a closed one.
func (s *ClusterSpec) NumJobs() int {
	var u uses
	defer u.end()
	return int(cdist.Dist_cluster_spec_num_jobs(u.spec(s)))
}

// Jobs are the names of the jobs, in their order; empty for nil and for a closed one.
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

// NumTasks is how many tasks a job has.
func (s *ClusterSpec) NumTasks(job string) (int, error) {
	var u uses
	defer u.end()
	native, job := u.spec(s), u.text(job)
	return u.number(func(out *int32) error { return cdist.Dist_cluster_spec_num_tasks(native, job, out) })
}

// number is what a question gives, unless something was wrong before.
func (u *uses) number(ask func(out *int32) error) (int, error) {
	if u.err != nil {
		return 0, u.err
	}
	var out int32
	err := ask(&out)
	return int(out), fromNative(err)
}

// TaskIndices are the indices of a job's tasks, ascending.
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

// int32List gives room for n numbers, and takes those out that were found.
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

// TaskAddress is the address of a task.
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

// Equal says whether both have the same jobs, in any order, with the same tasks. nil and a closed one equal nothing.
func (s *ClusterSpec) Equal(other *ClusterSpec) bool {
	var u uses
	defer u.end()
	a, b := u.spec(s), u.spec(other)
	return u.err == nil && cdist.Dist_cluster_spec_is_equal(a, b) != 0
}

// JSON is the spec as TensorFlow's as_dict() has it: a job with tasks 0, 1, ... is a list of addresses, any other an
// object. "" for nil and for a closed one.
func (s *ClusterSpec) JSON() string {
	var u uses
	defer u.end()
	return cdist.Dist_cluster_spec_json(u.spec(s))
}

// String is JSON.
func (s *ClusterSpec) String() string { return s.JSON() }

// rule asks one of the rules about a task.
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

// Validate fails where a cluster has not the jobs that training has, or a task is none of it: TensorFlow's checks.
func (s *ClusterSpec) Validate(taskType string, taskID int) error {
	_, err := s.rule(taskType, taskID, func(native int64, taskType *string, taskID int, _ *int32) error {
		return cdist.Dist_cluster_validate(native, taskType, taskID)
	})
	return err
}

// IsChief says whether a task is the chief: the chief, an evaluator, and worker 0 where there is no chief.
func (s *ClusterSpec) IsChief(taskType string, taskID int) (bool, error) {
	return s.says(taskType, taskID, cdist.Dist_cluster_is_chief)
}

// CollectiveLeader is who leads the collectives, "/job:worker/replica:0/task:0"; "" where nobody does.
func (s *ClusterSpec) CollectiveLeader(taskType string, taskID int) (string, error) {
	var u uses
	defer u.end()
	native, given, id := u.spec(s), u.givenType(taskType), u.taskID(taskID)
	return u.address(func(room []byte) error {
		return cdist.Dist_cluster_collective_leader(native, given, id, room, int64(len(room)))
	})
}

// address is a text that a question writes, unless something was wrong before.
func (u *uses) address(ask func(room []byte) error) (string, error) {
	if u.err != nil {
		return "", u.err
	}
	return textIn(make([]byte, MaxAddressBytes), ask)
}

// CoordinationLeader is who leads the coordination of the cluster: ps 0, else the chief, else worker 0; "" without any job.
func (s *ClusterSpec) CoordinationLeader() (string, error) {
	var u uses
	defer u.end()
	native := u.spec(s)
	return u.address(func(room []byte) error {
		return cdist.Dist_cluster_coordination_leader(native, room, int64(len(room)))
	})
}

// WorkerCount is with how many others, itself counted, a task of that type works.
func (s *ClusterSpec) WorkerCount(taskType string) (int, error) {
	return s.rule(taskType, TaskUnset, func(native int64, taskType *string, _ int, out *int32) error {
		return cdist.Dist_cluster_worker_count(native, taskType, out)
	})
}

// IDInCluster is the number of a task among those that it works with: the chief is 0 and workers follow.
func (s *ClusterSpec) IDInCluster(taskType string, taskID int) (int, error) {
	return s.rule(taskType, taskID, cdist.Dist_cluster_id_in_cluster)
}

// ShouldSaveCheckpoint says whether a task writes checkpoints: the chief does.
func (s *ClusterSpec) ShouldSaveCheckpoint(taskType string, taskID int) (bool, error) {
	return s.says(taskType, taskID, cdist.Dist_cluster_should_save_checkpoint)
}

// ShouldSaveSummary says whether a task writes summaries.
func (s *ClusterSpec) ShouldSaveSummary(taskType string, taskID int) (bool, error) {
	return s.says(taskType, taskID, cdist.Dist_cluster_should_save_summary)
}

// ShouldEvaluate says whether a task evaluates the model: an evaluator does, else who writes checkpoints.
func (s *ClusterSpec) ShouldEvaluate(taskType string, taskID int) (bool, error) {
	return s.says(taskType, taskID, cdist.Dist_cluster_should_evaluate)
}
