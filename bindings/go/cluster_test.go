// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"libdist.example/dist"
)

var twoJobs = []dist.ClusterJob{
	{Name: "worker", Addresses: []string{"a:1", "b:2"}},
	{Name: "ps", Addresses: []string{"c:4"}, TaskIndices: []int{3}},
}

const twoJobsJSON = `{"worker":["a:1","b:2"],"ps":{"3":"c:4"}}`

func newSpec(t *testing.T, jobs ...dist.ClusterJob) *dist.ClusterSpec {
	t.Helper()
	spec, err := dist.ClusterSpecFromJobs(jobs...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { spec.Close() })
	return spec
}

func closed(t *testing.T, r *dist.ClusterResolver, err error) *dist.ClusterResolver {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// all are the results of a question.
func all(results ...any) []any { return results }

func TestClusterSpecSaysWhichProcessesThereAre(t *testing.T) {
	spec := newSpec(t, twoJobs...)
	again, err := dist.ClusterSpecFromJSON(spec.JSON())
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
	both, err := dist.ClusterSpecUnion(newSpec(t, dist.ClusterJob{Name: "worker", Addresses: []string{"x:1"}}), sorted)
	is(t, "union", all(both.JSON(), err), all(`{"worker":["x:1","a:1"],"":{},"chief":["b:2"]}`, nil))
	empty, err := dist.NewClusterSpec(nil)
	is(t, "empty", all(empty.Jobs(), empty.JSON(), err), all([]string{}, "{}", nil))

	again.Close()
	again.Close()
	_, err = again.NumTasks("worker")
	fails(t, err, dist.ErrFailedPrecondition, "cluster spec is closed")
	_, err = dist.ClusterSpecUnion(again)
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
		if _, err := dist.ClusterSpecFromJobs(jobs...); !errors.Is(err, dist.ErrInvalidArgument) {
			t.Error(i, err)
		}
	}
	for _, text := range []string{"", "{", "[]", `{"worker": "a:1"}`, `{"worker": [5]}`, "{}\x00", "\xff",
		strings.Repeat(" ", dist.MaxClusterTextBytes) + "{}", strings.Repeat("[", 1<<20)} {
		_, err := dist.ClusterSpecFromJSON(text)
		fails(t, err, dist.ErrInvalidArgument, "")
	}
	spec := newSpec(t, twoJobs...)
	_, err := spec.TaskIndices("nobody")
	fails(t, err, dist.ErrInvalidArgument, "nobody")
	_, err = spec.TaskAddress("worker", 2)
	fails(t, err, dist.ErrInvalidArgument, "2")
	_, err = spec.TaskAddress("worker\x00", 0)
	fails(t, err, dist.ErrInvalidArgument, "NUL")
	_, err = dist.ClusterSpecUnion()
	fails(t, err, dist.ErrInvalidArgument, "ClusterSpecUnion")
	_, err = dist.ClusterSpecUnion(nil)
	fails(t, err, dist.ErrInvalidArgument, "nil")
}

func TestSimpleResolver(t *testing.T) {
	r, err := dist.NewSimpleResolver(newSpec(t, twoJobs...), &dist.ResolverOptions{
		TaskType: dist.Given("worker"), TaskID: dist.Given(1), NumAccelerators: 2, RPCLayer: dist.Given("grpc"),
		SessionAddress: dist.Given("s:9"),
	})
	closed(t, r, err)
	spec, err := r.Spec()
	is(t, "spec", all(spec.JSON(), err), all(twoJobsJSON, nil))
	is(t, "type", all(r.TaskType()), all("worker", true, nil))
	is(t, "id", all(r.TaskID()), all(1, nil))
	is(t, "layer", all(r.RPCLayer()), all("grpc", true, nil))
	is(t, "environment", all(r.Environment()), all("", true, nil))
	is(t, "accelerators", all(r.NumAccelerators("", dist.TaskUnset)), all(2, nil))
	is(t, "GPUs", all(r.GPUIDs()), all("", nil))
	is(t, "master", all(r.Master("", dist.TaskUnset, nil)), all("grpc://s:9", nil))
	is(t, "of a task", all(r.Master("worker", 0, dist.Given(""))), all("a:1", nil))
	text, err := r.Explain()
	is(t, "explained", all(strings.Contains(text, "worker"), err), all(true, nil))
	_, err = r.Master("worker", 5, nil)
	fails(t, err, dist.ErrInvalidArgument, "5")
	_, err = r.Master("worker", 0, dist.Given("g\x00"))
	fails(t, err, dist.ErrInvalidArgument, "NUL")

	unknown, err := dist.NewSimpleResolver(spec, nil)
	closed(t, unknown, err)
	is(t, "no type", all(unknown.TaskType()), all("", false, nil))
	is(t, "no id", all(unknown.TaskID()), all(dist.TaskUnset, nil))
	is(t, "no layer", all(unknown.RPCLayer()), all("", false, nil))
	for _, options := range []dist.ResolverOptions{
		{NumAccelerators: -1}, {TaskType: dist.Given("a\nb")}, {TaskType: dist.Given("a\x00b")}, {TaskID: dist.Given(-1 << 40)},
		{Environment: dist.Given("\x00")}, {RPCLayer: dist.Given(strings.Repeat("x", 1<<20))},
		{SessionAddress: dist.Given("\x00")}, {TFConfig: dist.Given("{}\x00")},
	} {
		_, err := dist.NewSimpleResolver(spec, &options)
		fails(t, err, dist.ErrInvalidArgument, "")
	}
	_, err = dist.NewSimpleResolver(nil, nil)
	fails(t, err, dist.ErrInvalidArgument, "nil")
	unknown.Close()
	unknown.Close()
	_, err = unknown.Spec()
	fails(t, err, dist.ErrFailedPrecondition, "cluster resolver is closed")
	_, err = dist.NewUnionResolver([]*dist.ClusterResolver{unknown}, nil)
	fails(t, err, dist.ErrFailedPrecondition, "cluster resolver is closed")
	_, err = dist.New(dist.Options{Replicas: 1, ClusterResolver: unknown})
	fails(t, err, dist.ErrFailedPrecondition, "cluster resolver is closed")
	_, err = (*dist.ClusterResolver)(nil).Spec()
	fails(t, err, dist.ErrInvalidArgument, "nil")
	is(t, "nil", (*dist.ClusterResolver)(nil).Close(), nil)
}

func TestTFConfigResolver(t *testing.T) {
	config := `{"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "worker", "index": "1"}}`
	given, err := dist.NewTFConfigResolver(&dist.ResolverOptions{TFConfig: &config})
	closed(t, given, err)
	r, err := dist.NewTFConfigResolver(nil)
	closed(t, r, err)
	t.Setenv("TF_CONFIG", config)
	for _, one := range []*dist.ClusterResolver{given, r} {
		is(t, "type", all(one.TaskType()), all("worker", true, nil))
		is(t, "id", all(one.TaskID()), all(1, nil))
		is(t, "master", all(one.Master("", dist.TaskUnset, nil)), all("b:2", nil))
		is(t, "environment", all(one.Environment()), all("", false, nil))
	}
	t.Setenv("TF_CONFIG", "{")
	_, err = r.Spec()
	fails(t, err, dist.ErrInvalidArgument, "TF_CONFIG")
	is(t, "given", all(given.TaskID()), all(1, nil))
}

func TestSlurmResolver(t *testing.T) {
	r, err := dist.NewSlurmResolver(dist.SlurmOptions{Rank: dist.Given(3), NumTasks: 4, HostList: dist.Given("n[1-2]"),
		TasksPerNode: dist.Given("2(x2)"), GPUsPerHost: 2}, nil)
	closed(t, r, err)
	spec, err := r.Spec()
	is(t, "spec", all(spec.JSON(), err), all(`{"worker":["n1:8888","n1:8889","n2:8888","n2:8889"]}`, nil))
	is(t, "id", all(r.TaskID()), all(3, nil))
	is(t, "GPUs", all(r.GPUIDs()), all("1", nil))
	jobs, err := dist.NewSlurmResolver(dist.SlurmOptions{Rank: dist.Given(1), HostList: dist.Given("n1,n2"),
		TasksOnEachHost: 1, PortBase: 7, Jobs: []dist.SlurmJob{{"chief", 1}, {"worker", 1}}}, nil)
	closed(t, jobs, err)
	spec, err = jobs.Spec()
	is(t, "jobs", all(spec.JSON(), err), all(`{"chief":["n1:7"],"worker":["n2:7"]}`, nil))
	t.Setenv("SLURM_PROCID", "") // which is set again in the end
	os.Unsetenv("SLURM_PROCID")
	_, err = dist.NewSlurmResolver(dist.SlurmOptions{}, nil)
	fails(t, err, dist.ErrFailedPrecondition, "SLURM_PROCID")
	for _, wrong := range []dist.SlurmOptions{
		{Rank: dist.Given(0), HostList: dist.Given("n["), TasksOnEachHost: 1},
		{Rank: dist.Given(0), HostList: dist.Given("n\x00"), TasksOnEachHost: 1},
		{Rank: dist.Given(0), HostList: dist.Given("n1"), TasksPerNode: dist.Given("1\x00")},
		{Rank: dist.Given(0), HostList: dist.Given("n1"), TasksOnEachHost: 1, Jobs: []dist.SlurmJob{{"worker", -1}}},
		{Rank: dist.Given(0), HostList: dist.Given("n1"), TasksOnEachHost: 1, Jobs: []dist.SlurmJob{{"w\x00", 1}}},
		{Rank: dist.Given(0), HostList: dist.Given("n1"), TasksOnEachHost: 1, PortBase: 65536},
	} {
		_, err := dist.NewSlurmResolver(wrong, nil)
		fails(t, err, dist.ErrInvalidArgument, "")
	}

	hosts, err := dist.SlurmHosts("n[01-03,7],m1")
	is(t, "hosts", all(hosts, err), all([]string{"n01", "n02", "n03", "n7", "m1"}, nil))
	is(t, "tasks", all(dist.SlurmTasksPerNode("2(x3),1")), all([]int{2, 2, 2, 1}, nil))
	for _, list := range []string{"n[", "n\x00", "n[1-99999999]"} {
		_, err := dist.SlurmHosts(list)
		fails(t, err, dist.ErrInvalidArgument, "")
	}
	for _, list := range []string{"2(x", "2\x00", "1(x99999999)"} {
		_, err := dist.SlurmTasksPerNode(list)
		fails(t, err, dist.ErrInvalidArgument, "")
	}
}

func TestKubernetesResolver(t *testing.T) {
	r, err := dist.NewKubernetesResolver(dist.KubernetesOptions{HostName: dist.Given("t-1"), NumWorkers: 2,
		Service: dist.Given("s"), Namespace: dist.Given("ns"), Domain: dist.Given("d"), Port: 5}, nil)
	closed(t, r, err)
	spec, err := r.Spec()
	is(t, "spec", all(spec.JSON(), err), all(`{"worker":["t-0.s.ns.svc.d:5","t-1.s.ns.svc.d:5"]}`, nil))
	is(t, "id", all(r.TaskID()), all(1, nil))
	is(t, "master", all(r.Master("", dist.TaskUnset, nil)), all("grpc://t-1.s.ns.svc.d:5", nil))
	second, err := dist.NewKubernetesResolver(dist.KubernetesOptions{HostName: dist.Given("t-1"), NumWorkers: 2,
		FirstIndex: 1, Index: dist.Given(2)}, nil)
	closed(t, second, err)
	is(t, "index", all(second.TaskID()), all(1, nil))
	for _, wrong := range []dist.KubernetesOptions{
		{HostName: dist.Given("t"), NumWorkers: 2}, {HostName: dist.Given("t-0\x00"), NumWorkers: 2},
		{HostName: dist.Given("t-0"), NumWorkers: 2, Domain: dist.Given("d")},
		{HostName: dist.Given("t-0"), NumWorkers: -2}, {HostName: dist.Given("t-0"), NumWorkers: 1 << 40},
	} {
		_, err := dist.NewKubernetesResolver(wrong, nil)
		fails(t, err, dist.ErrInvalidArgument, "")
	}
}

func TestUnionResolver(t *testing.T) {
	var members []*dist.ClusterResolver
	for i, address := range []string{"a:1", "b:2"} {
		spec := newSpec(t, dist.ClusterJob{Name: "worker", Addresses: []string{address}})
		member, err := dist.NewSimpleResolver(spec, &dist.ResolverOptions{TaskType: dist.Given("worker"), TaskID: dist.Given(i)})
		members = append(members, closed(t, member, err))
	}
	union, err := dist.NewUnionResolver(members, nil)
	closed(t, union, err)
	for _, member := range members {
		member.Close()
	}
	spec, err := union.Spec()
	is(t, "spec", all(spec.JSON(), err), all(`{"worker":["a:1","b:2"]}`, nil))
	is(t, "id", all(union.TaskID()), all(0, nil))
	over, err := dist.NewUnionResolver([]*dist.ClusterResolver{union}, &dist.ResolverOptions{TaskID: dist.Given(1)})
	closed(t, over, err)
	is(t, "given id", all(over.TaskID()), all(1, nil))
	for _, wrong := range [][]*dist.ClusterResolver{nil, {nil}, {union, nil}} {
		_, err := dist.NewUnionResolver(wrong, nil)
		fails(t, err, dist.ErrInvalidArgument, "")
	}
}

// ownFunctions answer all questions.
func ownFunctions(t *testing.T) dist.ResolverFunctions {
	spec := newSpec(t, twoJobs...)
	return dist.ResolverFunctions{
		Spec:        func() (*dist.ClusterSpec, error) { return spec, nil },
		TaskType:    func() (string, bool, error) { return "worker", true, nil },
		TaskID:      func() (int, error) { return 1, nil },
		RPCLayer:    func() (string, bool, error) { return "own", true, nil },
		Environment: func() (string, bool, error) { return "", false, nil },
		Master: func(taskType string, taskID int, layer *string) (string, error) {
			if layer == nil {
				return fmt.Sprint(taskType, taskID == dist.TaskUnset), nil
			}
			return fmt.Sprint(taskType, "/", taskID, "/", *layer), nil
		},
		NumAccelerators: func(string, int) (int, error) { return 7, nil },
	}
}

func TestResolverOfTheProgramsOwn(t *testing.T) {
	functions := ownFunctions(t)
	r, err := dist.NewHostResolver(functions, nil)
	closed(t, r, err)
	union, err := dist.NewUnionResolver([]*dist.ClusterResolver{r}, nil)
	closed(t, union, err)
	for _, r := range []*dist.ClusterResolver{r, union} {
		spec, err := r.Spec()
		is(t, "spec", all(spec.JSON(), err), all(twoJobsJSON, nil))
		is(t, "type", all(r.TaskType()), all("worker", true, nil))
		is(t, "id", all(r.TaskID()), all(1, nil))
		is(t, "accelerators", all(r.NumAccelerators("ps", 3)), all(7, nil))
	}
	is(t, "layer", all(r.RPCLayer()), all("own", true, nil))
	is(t, "environment", all(r.Environment()), all("", false, nil))
	is(t, "master", all(r.Master("ps", 3, dist.Given("x"))), all("ps/3/x", nil))
	is(t, "empty layer", all(r.Master("ps", 3, dist.Given(""))), all("ps/3/", nil))
	given, err := dist.NewHostResolver(functions, &dist.ResolverOptions{TaskType: dist.Given("chief")})
	closed(t, given, err)
	is(t, "given type", all(given.TaskType()), all("chief", true, nil))
	only, err := dist.NewHostResolver(dist.ResolverFunctions{Spec: functions.Spec}, nil)
	closed(t, only, err)
	is(t, "no id", all(only.TaskID()), all(dist.TaskUnset, nil))
	is(t, "address", all(only.Master("worker", 1, nil)), all("b:2", nil))
	_, err = dist.NewHostResolver(dist.ResolverFunctions{}, nil)
	fails(t, err, dist.ErrInvalidArgument, "")
}

func TestWhatAResolversFunctionsFailWith(t *testing.T) {
	mine := errors.New("mine")
	functions := ownFunctions(t)
	gone, err := dist.NewClusterSpec(nil)
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	var spec *dist.ClusterSpec
	var failure error
	functions.Spec = func() (*dist.ClusterSpec, error) { return spec, failure }
	functions.TaskType = func() (string, bool, error) { return strings.Repeat("x", dist.MaxAddressBytes), true, nil }
	functions.TaskID = func() (int, error) { return -1 << 40, nil }
	functions.RPCLayer = func() (string, bool, error) { return "a\x00b", true, nil }
	functions.Environment = func() (string, bool, error) { panic(mine) }
	functions.NumAccelerators = func(string, int) (int, error) { return 0, dist.Errorf(dist.ErrUnavailable, "not yet") }
	r, err := dist.NewHostResolver(functions, nil)
	closed(t, r, err)
	union, err := dist.NewUnionResolver([]*dist.ClusterResolver{r}, nil)
	closed(t, union, err)
	s := newStrategy(t, dist.Options{Replicas: 1, ClusterResolver: union})
	borrowed, err := s.ClusterResolver()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*dist.ClusterResolver{r, union, borrowed} {
		spec, failure = nil, mine
		_, err := r.Spec()
		is(t, "own error", err, mine)
		failure = nil
		_, err = r.Spec()
		fails(t, err, dist.ErrInvalidArgument, "Spec gave no")
		spec = gone
		_, err = r.Spec()
		fails(t, err, dist.ErrFailedPrecondition, "closed")
		_, _, err = r.TaskType()
		fails(t, err, dist.ErrInvalidArgument, "too long")
		_, err = r.TaskID()
		fails(t, err, dist.ErrInvalidArgument, "32 bits")
		_, _, err = r.RPCLayer()
		fails(t, err, dist.ErrInvalidArgument, "NUL")
		_, _, err = r.Environment()
		var panicked *dist.PanicError
		if !errors.As(err, &panicked) || !errors.Is(err, mine) {
			t.Error("panic:", err)
		}
		_, err = r.NumAccelerators("", dist.TaskUnset)
		fails(t, err, dist.ErrUnavailable, "not yet")
		text, err := r.Explain()
		is(t, "explained", all(strings.Contains(text, "not yet"), err), all(true, nil))
	}
}

func TestAStrategysResolver(t *testing.T) {
	r, err := dist.NewHostResolver(ownFunctions(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := newStrategy(t, dist.Options{Replicas: 2, ClusterResolver: r})
	r.Close()
	runtime.GC()
	borrowed, err := s.ClusterResolver()
	if err != nil {
		t.Fatal(err)
	}
	is(t, "id", all(borrowed.TaskID()), all(1, nil))
	union, err := dist.NewUnionResolver([]*dist.ClusterResolver{borrowed}, nil)
	closed(t, union, err)
	borrowed.Close()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = borrowed.TaskID()
	fails(t, err, dist.ErrFailedPrecondition, "closed")
	is(t, "of the union", all(union.TaskID()), all(1, nil))
	_, err = s.ClusterResolver()
	fails(t, err, dist.ErrFailedPrecondition, "closed")
	is(t, "without", all(newStrategy(t, dist.Options{Replicas: 1}).ClusterResolver()), all((*dist.ClusterResolver)(nil), nil))
}

func TestSeveralGoroutinesAskAResolver(t *testing.T) {
	functions := ownFunctions(t)
	functions.TaskID = func() (int, error) { return 0, io42 }
	r, err := dist.NewHostResolver(functions, nil)
	closed(t, r, err)
	var all sync.WaitGroup
	for range 4 {
		all.Add(1)
		go func() {
			defer all.Done()
			for range 50 {
				if _, err := r.TaskID(); err != io42 {
					t.Error(err)
				}
				if spec, err := r.Spec(); err != nil || spec.Close() != nil {
					t.Error(err)
				}
			}
		}()
	}
	all.Wait()
}

var io42 = errors.New("42")

func TestAForgottenResolverEnds(t *testing.T) {
	ended := make(chan struct{})
	func() {
		functions := ownFunctions(t)
		held := &struct{ big [4]*int }{}
		runtime.AddCleanup(held, func(ended chan struct{}) { close(ended) }, ended)
		functions.TaskID = func() (int, error) {
			if held.big[0] != nil {
				return 0, nil
			}
			return 1, nil
		}
		r, err := dist.NewHostResolver(functions, nil)
		if err != nil {
			t.Fatal(err)
		}
		union, err := dist.NewUnionResolver([]*dist.ClusterResolver{r}, nil)
		is(t, "union", all(union.TaskID()), all(1, nil))
		is(t, "made", err, nil)
	}()
	for deadline := time.Now().Add(time.Minute); ; {
		runtime.GC()
		select {
		case <-ended:
			return
		default:
		}
		if time.Now().After(deadline) {
			t.Fatal("the resolver's functions are still held")
		}
		runtime.Gosched()
	}
}

func TestPartitioners(t *testing.T) {
	is(t, "fixed", all(dist.FixedShards([]int{10, 2}, 0, 3)), all([]int{3, 1}, nil))
	is(t, "from the end", all(dist.FixedShards([]int{2, 10}, -1, 3)), all([]int{1, 3}, nil))
	is(t, "min", all(dist.MinSizeShards([]int{6, 1}, 0, 4, 8, 10)), all([]int{3, 1}, nil))
	is(t, "defaults", all(dist.MinSizeShards([]int{10, 3}, 0, 4, dist.PartitionerMinShardBytes,
		dist.PartitionerMaxShards)), all([]int{1, 1}, nil))
	is(t, "max", all(dist.MaxSizeShards([]int{6, 1}, 0, 1, 1, 0)), all([]int{6, 1}, nil))
	is(t, "at most", all(dist.MaxSizeShards([]int{6, 1}, 0, 1, 1, 4)), all([]int{4, 1}, nil))
	is(t, "rows", all(dist.RowsOfPart(10, 3, 1)), all(4, 3, nil))
	is(t, "part", all(dist.PartOfRow(10, 3, 9)), all(2, 2, nil))
	for i, ask := range []func() ([]int, error){
		func() ([]int, error) { return dist.FixedShards(nil, 0, 3) },
		func() ([]int, error) { return dist.FixedShards([]int{}, 0, 3) },
		func() ([]int, error) { return dist.FixedShards([]int{3}, 1, 3) },
		func() ([]int, error) { return dist.FixedShards([]int{3}, 1<<40, 3) },
		func() ([]int, error) { return dist.FixedShards(make([]int, dist.MaxNDim+1), 0, 3) },
		func() ([]int, error) { return dist.FixedShards(make([]int, 1<<20), 0, 3) },
		func() ([]int, error) { return dist.MinSizeShards([]int{3}, 0, 0, 1, 1) },
		func() ([]int, error) { return dist.MinSizeShards([]int{1 << 62, 1 << 62}, 0, 4, 1, 1) },
		func() ([]int, error) { return dist.MaxSizeShards([]int{0, 4}, 0, 4, 4, 0) },
		func() ([]int, error) { _, _, err := dist.RowsOfPart(10, 3, 3); return nil, err },
		func() ([]int, error) { _, _, err := dist.PartOfRow(10, 3, 10); return nil, err },
	} {
		if _, err := ask(); !errors.Is(err, dist.ErrInvalidArgument) {
			t.Error(i, err)
		}
	}
}
