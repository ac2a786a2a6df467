// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"fmt"
	"os"
	"strings"

	"libdist.example/dist"
)

func (p *player) spec(l *line, key string) *dist.ClusterSpec {
	return get[*dist.ClusterSpec](p, l.given[key])
}
func (p *player) resolver(l *line) *dist.ClusterResolver {
	return get[*dist.ClusterResolver](p, l.given["resolver"])
}

// ended is what a ..._destroy does: the name may be another object's then.
func (p *player) ended(name string, object interface{ Close() error }) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.objects, name)
	return object.Close()
}

func (a *answer) spec(out *dist.ClusterSpec, err error) error {
	if err == nil {
		a.object("out", out, out == nil)
	}
	return err
}

func (a *answer) resolver(out *dist.ClusterResolver, err error) error {
	if err == nil {
		a.object("out", out, out == nil)
	}
	return err
}

func (a *answer) yes(out bool, err error) error {
	if err == nil {
		a.bool("out", out)
	}
	return err
}

// maybe is a text that may not be set.
func (a *answer) maybe(out string, isSet bool, err error) error {
	if err == nil {
		a.text("out", out)
		a.bool("out.is_set", isSet)
	}
	return err
}

// given is a text that is given; nil: it is not.
func (f fields) maybe(key string) *string {
	if _, has := f[key]; !has {
		return nil
	}
	return dist.Given(f.text(key))
}

// task is how a task is named.
func (l *line) task() (taskType string, taskID int) {
	return l.given.text("task_type"), l.given.int("task_id")
}

func (l *line) resolverOptions() *dist.ResolverOptions {
	options := &dist.ResolverOptions{
		TaskType: l.given.maybe("options.task_type"), NumAccelerators: l.given.int("options.num_accelerators"),
		RPCLayer: l.given.maybe("options.rpc_layer"), Environment: l.given.maybe("options.environment"),
		SessionAddress: l.given.maybe("options.session_address"), TFConfig: l.given.maybe("options.tf_config"),
	}
	if l.given.int("options.has_task_id") != 0 {
		options.TaskID = dist.Given(l.given.int("options.task_id"))
	}
	return options
}

func (l *line) slurmOptions() dist.SlurmOptions {
	options := dist.SlurmOptions{
		NumTasks: l.given.int("slurm.num_tasks"), HostList: l.given.maybe("slurm.host_list"),
		TasksPerNode: l.given.maybe("slurm.tasks_per_node"), TasksOnEachHost: l.given.int("slurm.tasks_on_each_host"),
		PortBase: l.given.int("slurm.port_base"), GPUsPerHost: l.given.int("slurm.gpus_per_host"),
		GPUsPerTask: l.given.int("slurm.gpus_per_task"),
	}
	if l.given.int("slurm.has_rank") != 0 {
		options.Rank = dist.Given(l.given.int("slurm.rank"))
	}
	for i := 0; l.given[fmt.Sprintf("slurm.jobs%d.name", i)] != ""; i++ {
		prefix := fmt.Sprintf("slurm.jobs%d.", i)
		options.Jobs = append(options.Jobs, dist.SlurmJob{Name: l.given.text(prefix + "name"),
			NumTasks: l.given.int(prefix + "num_tasks")})
	}
	return options
}

func (l *line) jobs() (jobs []dist.ClusterJob) {
	for i := 0; l.given[fmt.Sprintf("jobs%d.name", i)] != ""; i++ {
		prefix := fmt.Sprintf("jobs%d.", i)
		jobs = append(jobs, dist.ClusterJob{Name: l.given.text(prefix + "name"),
			Addresses: l.given.texts(prefix + "addresses"), TaskIndices: l.given.ints(prefix + "task_indices")})
	}
	return jobs
}

var specCalls = map[string]func(p *player, l *line, a *answer) error{
	"setenv": func(_ *player, l *line, _ *answer) error {
		if value := l.given.maybe("value"); value != nil {
			return os.Setenv(l.given.text("name"), *value)
		}
		return os.Unsetenv(l.given.text("name"))
	},
	"cluster_spec_from_json": func(_ *player, l *line, a *answer) error {
		return a.spec(dist.NewClusterSpecFromJSON(l.given.text("text")))
	},
	"cluster_spec_create": func(_ *player, l *line, a *answer) error {
		return a.spec(dist.NewClusterSpecFromJobs(l.jobs()...))
	},
	"cluster_spec_destroy": func(p *player, l *line, _ *answer) error {
		return p.ended(l.given["spec"], p.spec(l, "spec"))
	},
	"cluster_spec_num_jobs": func(p *player, l *line, a *answer) error {
		return a.number(p.spec(l, "spec").NumJobs(), nil)
	},
	"cluster_spec_json": func(p *player, l *line, a *answer) error { return a.name(p.spec(l, "spec").JSON(), nil) },
	"cluster_spec_job": func(p *player, l *line, a *answer) error {
		return a.name(p.spec(l, "spec").Jobs()[l.given.int("index")], nil)
	},
	"cluster_spec_num_tasks": func(p *player, l *line, a *answer) error {
		return a.number(p.spec(l, "spec").NumTasks(l.given.text("job")))
	},
	"cluster_spec_task_indices": func(p *player, l *line, a *answer) error {
		return a.coordinates(p.spec(l, "spec").TaskIndices(l.given.text("job")))
	},
	"cluster_spec_task_address": func(p *player, l *line, a *answer) error {
		return a.name(p.spec(l, "spec").TaskAddress(l.given.text("job"), l.given.int("task")))
	},
	"cluster_spec_is_equal": func(p *player, l *line, a *answer) error {
		return a.yes(p.spec(l, "a").Equal(p.spec(l, "b")), nil)
	},
	"cluster_validate": func(p *player, l *line, _ *answer) error { return p.spec(l, "spec").Validate(l.task()) },
	"cluster_is_chief": func(p *player, l *line, a *answer) error { return a.yes(p.spec(l, "spec").IsChief(l.task())) },
	"cluster_id_in_cluster": func(p *player, l *line, a *answer) error {
		return a.number(p.spec(l, "spec").IDInCluster(l.task()))
	},
	"cluster_should_save_checkpoint": func(p *player, l *line, a *answer) error {
		return a.yes(p.spec(l, "spec").ShouldSaveCheckpoint(l.task()))
	},
	"cluster_collective_leader": func(p *player, l *line, a *answer) error {
		return a.name(p.spec(l, "spec").CollectiveLeader(l.task()))
	},
	"cluster_coordination_leader": func(p *player, l *line, a *answer) error {
		return a.name(p.spec(l, "spec").CoordinationLeader())
	},
	"cluster_worker_count": func(p *player, l *line, a *answer) error {
		return a.number(p.spec(l, "spec").WorkerCount(l.given.text("task_type")))
	},
	"slurm_expand_host_list": func(_ *player, l *line, a *answer) error {
		hosts, err := dist.SlurmHosts(l.given.text("host_list"))
		if err == nil {
			a.seen["out"] = true
			if want := l.answered.texts("out"); strings.Join(want, "\n") != strings.Join(hosts, "\n") {
				a.p.fault(l, "out is %q, expected %q", hosts, want)
			}
		}
		return err
	},
	"slurm_expand_tasks_per_node": func(_ *player, l *line, a *answer) error {
		return a.coordinates(dist.SlurmTasksPerNode(l.given.text("tasks_per_node")))
	},
}

var resolverCalls = map[string]func(p *player, l *line, a *answer) error{
	"strategy_cluster_resolver": func(p *player, l *line, a *answer) error {
		return a.resolver(get[*dist.Strategy](p, l.given["strategy"]).ClusterResolver())
	},
	"cluster_resolver_create_simple": func(p *player, l *line, a *answer) error {
		return a.resolver(dist.NewSimpleResolver(p.spec(l, "spec"), l.resolverOptions()))
	},
	"cluster_resolver_create_tf_config": func(_ *player, l *line, a *answer) error {
		return a.resolver(dist.NewTFConfigResolver(l.resolverOptions()))
	},
	"cluster_resolver_create_slurm": func(_ *player, l *line, a *answer) error {
		return a.resolver(dist.NewSlurmResolver(l.slurmOptions(), l.resolverOptions()))
	},
	"cluster_resolver_create_union": func(p *player, l *line, a *answer) error {
		var members []*dist.ClusterResolver
		for _, name := range l.given.array("resolvers") {
			members = append(members, get[*dist.ClusterResolver](p, name))
		}
		return a.resolver(dist.NewUnionResolver(members, l.resolverOptions()))
	},
	"cluster_resolver_destroy": func(p *player, l *line, _ *answer) error {
		return p.ended(l.given["resolver"], p.resolver(l))
	},
	"cluster_resolver_spec": func(p *player, l *line, a *answer) error { return a.spec(p.resolver(l).Spec()) },
	"cluster_resolver_task_type": func(p *player, l *line, a *answer) error {
		return a.maybe(p.resolver(l).TaskType())
	},
	"cluster_resolver_rpc_layer": func(p *player, l *line, a *answer) error {
		return a.maybe(p.resolver(l).RPCLayer())
	},
	"cluster_resolver_environment": func(p *player, l *line, a *answer) error {
		return a.maybe(p.resolver(l).Environment())
	},
	"cluster_resolver_task_id": func(p *player, l *line, a *answer) error { return a.number(p.resolver(l).TaskID()) },
	"cluster_resolver_master": func(p *player, l *line, a *answer) error {
		taskType, id := l.task()
		return a.name(p.resolver(l).Master(taskType, id, l.given.maybe("rpc_layer")))
	},
	"cluster_resolver_num_accelerators": func(p *player, l *line, a *answer) error {
		return a.number(p.resolver(l).NumAccelerators(l.task()))
	},
	"cluster_resolver_gpu_ids": func(p *player, l *line, a *answer) error { return a.name(p.resolver(l).GPUIDs()) },
}

var partitionerCalls = map[string]func(p *player, l *line, a *answer) error{
	"partitions_fixed_shards": func(_ *player, l *line, a *answer) error {
		return a.coordinates(dist.FixedShards(l.given.ints("shape"), l.given.int("axis"), l.given.int("num_shards")))
	},
	"partitions_min_size": func(_ *player, l *line, a *answer) error {
		return a.coordinates(dist.MinSizeShards(l.given.ints("shape"), l.given.int("axis"), l.given.int("element_bytes"),
			l.given.int("min_shard_bytes"), l.given.int("max_shards")))
	},
	"partitions_max_size": func(_ *player, l *line, a *answer) error {
		return a.coordinates(dist.MaxSizeShards(l.given.ints("shape"), l.given.int("axis"), l.given.int("element_bytes"),
			l.given.int("max_shard_bytes"), l.given.int("max_shards")))
	},
}
