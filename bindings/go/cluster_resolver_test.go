// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"libdist.example/dist"
)

func closed(t *testing.T, r *dist.ClusterResolver, err error) *dist.ClusterResolver {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
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

func TestRendezvousResolver(t *testing.T) {
	alone := dist.RendezvousOptions{Rank: dist.Given(0), Size: 1}
	r, err := dist.NewRendezvousResolver(background, alone, nil)
	closed(t, r, err)
	is(t, "id", all(r.TaskID()), all(0, nil))
	master, err := r.Master("", dist.TaskUnset, nil)
	if err != nil || !strings.HasPrefix(master, "grpc://127.0.0.1:") {
		t.Fatalf("master: %q, %v", master, err)
	}
	for _, wrong := range []dist.RendezvousOptions{
		{Rank: dist.Given(1), Size: 1}, {Rank: dist.Given(-1), Size: 1}, {Rank: dist.Given(0), Size: 1 << 17},
		{Rank: dist.Given(0), Size: 2, Address: dist.Given("nonsense")},
		{Rank: dist.Given(0), Size: 1, JobName: dist.Given("two\nlines")},
	} {
		_, err := dist.NewRendezvousResolver(background, wrong, nil)
		fails(t, err, dist.ErrInvalidArgument, "")
	}
	over, cancel := context.WithCancel(background)
	cancel()
	_, err = dist.NewRendezvousResolver(over, alone, nil)
	fails(t, err, dist.ErrCancelled, "")
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
