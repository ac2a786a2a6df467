// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"libdist.example/dist"
)

var twoJobs = []dist.ClusterJob{
	{Name: "worker", Addresses: []string{"a:1", "b:2"}},
	{Name: "ps", Addresses: []string{"c:4"}, TaskIndices: []int{3}},
}

const twoJobsJSON = `{"worker":["a:1","b:2"],"ps":{"3":"c:4"}}`

func newSpec(t *testing.T, jobs ...dist.ClusterJob) *dist.ClusterSpec {
	t.Helper()
	spec, err := dist.NewClusterSpecFromJobs(jobs...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { spec.Close() })
	return spec
}

// all are the results of a question.
func all(results ...any) []any { return results }

func TestClusterSpecSaysWhichProcessesThereAre(t *testing.T) {
	spec := newSpec(t, twoJobs...)
	again, err := dist.NewClusterSpecFromJSON(spec.JSON())
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range []*dist.ClusterSpec{spec, again} {
		is(t, "jobs", spec.Jobs(), []string{"worker", "ps"})
		is(t, "number of jobs", spec.NumJobs(), 2)
		is(t, "tasks", all(spec.NumTasks("worker")), all(2, nil))
		is(t, "indices", all(spec.TaskIndices("worker")), all([]int{0, 1}, nil))
		is(t, "other indices", all(spec.TaskIndices("ps")), all([]int{3}, nil))
		is(t, "address", all(spec.TaskAddress("ps", 3)), all("c:4", nil))
		is(t, "JSON", fmt.Sprint(spec), twoJobsJSON)
	}
	sorted, err := dist.NewClusterSpec(map[string][]string{"worker": {"a:1"}, "chief": {"b:2"}, "": nil})
	is(t, "of a map", all(sorted.Jobs(), err), all([]string{"", "chief", "worker"}, nil))
	is(t, "a job without a name", all(sorted.NumTasks("")), all(0, nil))
	is(t, "equal", []bool{spec.Equal(again), spec.Equal(sorted), spec.Equal(nil)}, []bool{true, false, false})
	both, err := dist.NewUnionClusterSpec(newSpec(t, dist.ClusterJob{Name: "worker", Addresses: []string{"x:1"}}), sorted)
	is(t, "union", all(both.JSON(), err), all(`{"worker":["x:1","a:1"],"":{},"chief":["b:2"]}`, nil))
	empty, err := dist.NewClusterSpec(nil)
	is(t, "empty", all(empty.Jobs(), empty.JSON(), err), all([]string{}, "{}", nil))

	again.Close()
	again.Close()
	_, err = again.NumTasks("worker")
	fails(t, err, dist.ErrFailedPrecondition, "cluster spec is closed")
	_, err = dist.NewUnionClusterSpec(again)
	fails(t, err, dist.ErrFailedPrecondition, "cluster spec is closed")
	is(t, "closed", all(again.Jobs(), again.JSON(), again.Equal(spec), spec.Equal(again)),
		all([]string{}, "", false, false))
	is(t, "nil", all((*dist.ClusterSpec)(nil).Jobs(), (*dist.ClusterSpec)(nil).Close()), all([]string{}, nil))
}

func TestClusterRules(t *testing.T) {
	spec, err := dist.NewClusterSpec(map[string][]string{"chief": {"a:1"}, "worker": {"b:1", "c:1"}, "ps": {"d:1"}})
	if err != nil {
		t.Fatal(err)
	}
	is(t, "valid", spec.Validate("worker", 1), nil)
	is(t, "chief", all(spec.IsChief("chief", 0)), all(true, nil))
	is(t, "no chief", all(spec.IsChief("worker", 0)), all(false, nil))
	is(t, "collective leader", all(spec.CollectiveLeader("worker", 1)), all("/job:chief/replica:0/task:0", nil))
	is(t, "coordination leader", all(spec.CoordinationLeader()), all("/job:ps/replica:0/task:0", nil))
	is(t, "workers", all(spec.WorkerCount("worker")), all(3, nil))
	is(t, "id", all(spec.IDInCluster("worker", 1)), all(2, nil))
	is(t, "checkpoint", all(spec.ShouldSaveCheckpoint("chief", 0)), all(true, nil))
	is(t, "summary", all(spec.ShouldSaveSummary("worker", 1)), all(false, nil))
	is(t, "evaluate", all(spec.ShouldEvaluate("chief", 0)), all(true, nil))
	alone, _ := dist.NewClusterSpec(nil)
	is(t, "alone", all(alone.ShouldSaveCheckpoint("", dist.TaskUnset)), all(true, nil))
	for _, wrong := range []struct {
		taskType string
		id       int
	}{{"gopher", 0}, {"worker", 2}, {"worker", dist.TaskUnset}, {"worker", -1 << 40}, {"worker", 1 << 40}, {"w\x00", 0}} {
		fails(t, spec.Validate(wrong.taskType, wrong.id), dist.ErrInvalidArgument, "")
	}
}

func TestBadClusterSpecsAreRefused(t *testing.T) {
	many := make([]dist.ClusterJob, dist.MaxClusterJobs+1)
	for i := range many {
		many[i].Name = fmt.Sprint("job", i)
	}
	one := func(name, address string, indices ...int) []dist.ClusterJob {
		return []dist.ClusterJob{{Name: name, Addresses: []string{address}, TaskIndices: indices}}
	}
	for i, jobs := range [][]dist.ClusterJob{
		many, one("worker", "a\nb"), one("worker", "a\x00:1"), one("wor\x00ker", "a:1"), one("worker", "\xff:1"),
		one(strings.Repeat("x", dist.MaxJobNameBytes), "a:1"), one("worker", strings.Repeat("a", dist.MaxAddressBytes)),
		one("worker", "a:1", 1<<31), one("worker", "a:1", dist.TaskUnset), one("worker", "a:1", 0, 1),
		{{Name: "worker", Addresses: make([]string, dist.MaxClusterTasks+1)}},
	} {
		if _, err := dist.NewClusterSpecFromJobs(jobs...); !errors.Is(err, dist.ErrInvalidArgument) {
			t.Error(i, err)
		}
	}
	for _, text := range []string{"", "{", "[]", `{"worker": "a:1"}`, `{"worker": [5]}`, "{}\x00", "\xff",
		strings.Repeat(" ", dist.MaxClusterTextBytes) + "{}", strings.Repeat("[", 1<<20)} {
		_, err := dist.NewClusterSpecFromJSON(text)
		fails(t, err, dist.ErrInvalidArgument, "")
	}
	spec := newSpec(t, twoJobs...)
	_, err := spec.TaskIndices("nobody")
	fails(t, err, dist.ErrInvalidArgument, "nobody")
	_, err = spec.TaskAddress("worker", 2)
	fails(t, err, dist.ErrInvalidArgument, "2")
	_, err = spec.TaskAddress("worker\x00", 0)
	fails(t, err, dist.ErrInvalidArgument, "NUL")
	_, err = dist.NewUnionClusterSpec()
	fails(t, err, dist.ErrInvalidArgument, "NewUnionClusterSpec")
	_, err = dist.NewUnionClusterSpec(nil)
	fails(t, err, dist.ErrInvalidArgument, "nil")
}
