// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"context"
	"strings"

	"libdist.example/dist/internal/cdist"
)

// A ClusterResolver finds the cluster to which a process belongs, and the task that the process is. Several
// goroutines may query it at the same time. Do not change environment variables while another goroutine
// creates a resolver or queries one made by [NewTFConfigResolver].
type ClusterResolver struct {
	object
	of    *Strategy     // owner of a borrowed handle; otherwise nil
	hosts []*hostAnswer // the resolvers of your own in it
}

// Given returns a pointer to value, for option fields that are pointers.
func Given[T any](value T) *T { return &value }

// newResolver creates a resolver with options.
func newResolver(u *uses, options *ResolverOptions, hosts []*hostAnswer,
	create func(options cdist.Dist_cluster_resolver_options, out *int64) error) (*ClusterResolver, error) {
	native := options.native(u)
	if native != nil {
		defer cdist.DeleteDist_cluster_resolver_options(native)
	}
	if u.err != nil {
		return nil, u.err
	}
	var out int64
	if err := create(native, &out); err != nil {
		return nil, fromNative(err)
	}
	r := &ClusterResolver{hosts: hosts}
	r.given = u.keep()
	r.open(out, cdist.Dist_cluster_resolver_destroy, nil)
	return r, nil
}

// NewSimpleResolver returns a resolver for the given spec. Here and in the functions below, options may be
// nil, and the caller must close the resolver.
func NewSimpleResolver(spec *ClusterSpec, options *ResolverOptions) (*ClusterResolver, error) {
	var u uses
	defer u.end()
	native := u.spec(spec)
	return newResolver(&u, options, nil, func(options cdist.Dist_cluster_resolver_options, out *int64) error {
		return cdist.Dist_cluster_resolver_create_simple(native, options, out)
	})
}

// NewTFConfigResolver returns a resolver for TF_CONFIG. It reads the environment variable at each query.
func NewTFConfigResolver(options *ResolverOptions) (*ClusterResolver, error) {
	var u uses
	defer u.end()
	return newResolver(&u, options, nil, cdist.Dist_cluster_resolver_create_tf_config)
}

// A SlurmJob is a job with a number of tasks of a Slurm step.
type SlurmJob struct {
	Name     string
	NumTasks int
}

// NewSlurmResolver returns a resolver for a Slurm step. It reads the environment once, during this call.
//
// The ranks are placed on the hosts as SLURM_DISTRIBUTION specifies: block (the default), cyclic or plane=N. Any
// other distribution over several hosts is an error.
func NewSlurmResolver(slurm SlurmOptions, options *ResolverOptions) (*ClusterResolver, error) {
	var u uses
	defer u.end()
	native := slurm.native(&u)
	defer cdist.DeleteDist_slurm_options(native)
	return newResolver(&u, options, nil, func(options cdist.Dist_cluster_resolver_options, out *int64) error {
		return cdist.Dist_cluster_resolver_create_slurm(native, options, out)
	})
}

// slurmJobs sets the jobs of a Slurm step.
func (u *uses) slurmJobs(native cdist.Dist_slurm_options, given []SlurmJob) {
	if given == nil {
		return
	}
	jobs := cdist.NewClusterJobs()
	u.later(func() { cdist.DeleteClusterJobs(jobs) })
	for _, job := range given {
		jobs.Add(u.text(job.Name), nil, nil, int64(job.NumTasks))
	}
	native.Set_jobs(jobs)
}

// NewKubernetesResolver returns a resolver for the pods of a StatefulSet or an Indexed Job, based on their
// names. It reads the environment once, during this call.
func NewKubernetesResolver(pods KubernetesOptions, options *ResolverOptions) (*ClusterResolver, error) {
	var u uses
	defer u.end()
	native := pods.native(&u)
	defer cdist.DeleteDist_kubernetes_options(native)
	return newResolver(&u, options, nil, func(options cdist.Dist_cluster_resolver_options, out *int64) error {
		return cdist.Dist_cluster_resolver_create_kubernetes(native, options, out)
	})
}

// NewRendezvousResolver waits until all workers of a job have met at one address, and returns a resolver for the
// cluster that they form. Every worker listens on a port that the system chooses.
//
// The ranks come from the options, or from DIST_RANK and DIST_SIZE, torchrun, Open MPI, PMI or srun. The end of ctx ends
// the wait. If ctx has no deadline, the wait is limited to 10 minutes. If workers are missing at the deadline, the error
// lists their ranks.
func NewRendezvousResolver(ctx context.Context, workers RendezvousOptions, options *ResolverOptions) (*ClusterResolver, error) {
	var u uses
	defer u.end()
	native := workers.native(&u)
	defer cdist.DeleteDist_rendezvous_options(native)
	if u.err != nil {
		return nil, u.err
	}
	call, err := newTimedCall(ctx)
	if err != nil {
		return nil, err
	}
	defer call.cancel.end()
	native.SetTimeout_ns(call.timeout(0))
	native.SetCancel(call.cancel.handle())
	resolver, err := newResolver(&u, options, nil, func(options cdist.Dist_cluster_resolver_options, out *int64) error {
		return cdist.Dist_cluster_resolver_create_rendezvous(native, options, out)
	})
	return resolver, call.own(err)
}

// NewUnionResolver returns a union of several resolvers. Its spec is the [NewUnionClusterSpec] of their specs.
// Everything else comes from the first resolver, unless options set it.
func NewUnionResolver(resolvers []*ClusterResolver, options *ResolverOptions) (*ClusterResolver, error) {
	var u uses
	defer u.end()
	handles := make([]int64, len(resolvers))
	var hosts []*hostAnswer
	for i, resolver := range resolvers {
		handles[i] = u.resolver(resolver)
		if resolver != nil {
			hosts = append(hosts, resolver.hosts...)
		}
	}
	return newResolver(&u, options, hosts, func(options cdist.Dist_cluster_resolver_options, out *int64) error {
		return cdist.Dist_cluster_resolver_create_union(handles, int64(len(handles)), options, out)
	})
}

// Close releases the resolver. Strategies and unions that use it keep it. Closing a nil or closed resolver
// does nothing.
func (r *ClusterResolver) Close() error {
	if r != nil {
		r.close()
	}
	return nil
}

func (u *uses) resolver(r *ClusterResolver) int64 {
	if r == nil || r.of != nil && u.strategy(r.of) == 0 {
		return 0
	}
	return u.takeMade(&r.object, "cluster resolver")
}

// ask queries the resolver. It returns an error of a host callback unchanged.
func (r *ClusterResolver) ask(u *uses, call func(native int64) error) error {
	native := u.resolver(r)
	if u.err != nil {
		return u.err
	}
	err := fromNative(call(native))
	if report, failed := err.(*Error); failed && r != nil {
		for _, host := range r.hosts {
			if own := host.reason(report); own != nil {
				return own
			}
		}
	}
	return err
}

// Spec returns the cluster. A resolver made by [NewSimpleResolver] returns the spec with which it was
// created. The caller must close the spec.
func (r *ClusterResolver) Spec() (*ClusterSpec, error) {
	var u uses
	defer u.end()
	var out int64
	if err := r.ask(&u, func(native int64) error { return cdist.Dist_cluster_resolver_spec(native, &out) }); err != nil {
		return nil, err
	}
	return ownSpec(out, nil)
}

func (r *ClusterResolver) text(ask func(native int64, room []byte, size int64, isSet *int32) error) (string, bool, error) {
	var u uses
	defer u.end()
	var isSet int32
	text, err := u.address(func(room []byte) error {
		return r.ask(&u, func(native int64) error { return ask(native, room, int64(len(room)), &isSet) })
	})
	return text, err == nil && isSet != 0, err
}

// TaskType returns the job of this process. isSet is false if it is not known.
func (r *ClusterResolver) TaskType() (taskType string, isSet bool, err error) {
	return r.text(cdist.Dist_cluster_resolver_task_type)
}

// TaskID returns the index of this process in its job, or [TaskUnset] if it is not known.
func (r *ClusterResolver) TaskID() (int, error) {
	var u uses
	defer u.end()
	out := int32(TaskUnset)
	err := r.ask(&u, func(native int64) error { return cdist.Dist_cluster_resolver_task_id(native, &out) })
	return int(out), err
}

// RPCLayer returns the prefix of addresses, such as "grpc". isSet is false if it is not known.
func (r *ClusterResolver) RPCLayer() (layer string, isSet bool, err error) {
	return r.text(cdist.Dist_cluster_resolver_rpc_layer)
}

// Environment returns the platform on which the cluster runs. isSet is false if it is not known.
func (r *ClusterResolver) Environment() (environment string, isSet bool, err error) {
	return r.text(cdist.Dist_cluster_resolver_environment)
}

// Master returns the address to connect to for a task, such as "grpc://host:port". If rpcLayer is nil, the
// RPC layer is that of the resolver; "" selects no layer.
//
// If no task is given, because taskType is "" or taskID is [TaskUnset], the result depends on the kind of
// resolver:
//
//   - NewSimpleResolver: SessionAddress or "", after the RPC layer.
//   - NewTFConfigResolver: the address of the task, with the missing type or id taken from this process.
//   - NewSlurmResolver, NewKubernetesResolver: the address of this process, or "" if its task is not known.
//   - NewUnionResolver: the result of the first resolver.
//   - NewHostResolver: the result of the Master function, or else the same as for NewSimpleResolver without a
//     SessionAddress.
//
// With TF_CONFIG, "session_master" takes precedence over everything else, and the result is "" if the cluster
// has only one task.
func (r *ClusterResolver) Master(taskType string, taskID int, rpcLayer *string) (string, error) {
	var u uses
	defer u.end()
	given, id := u.givenType(taskType), u.taskID(taskID)
	if rpcLayer != nil {
		u.text(*rpcLayer)
	}
	return u.address(func(room []byte) error {
		return r.ask(&u, func(native int64) error {
			return cdist.Dist_cluster_resolver_master(native, given, id, rpcLayer, room, int64(len(room)))
		})
	})
}

// NumAccelerators returns the number of accelerators of a task, or of this process if taskType is "" and
// taskID is [TaskUnset].
func (r *ClusterResolver) NumAccelerators(taskType string, taskID int) (int, error) {
	var u uses
	defer u.end()
	given, id := u.givenType(taskType), u.taskID(taskID)
	var out int32
	err := r.ask(&u, func(native int64) error {
		return cdist.Dist_cluster_resolver_num_accelerators(native, given, id, &out)
	})
	return int(out), err
}

// GPUIDs returns the GPUs of this process in the format of CUDA_VISIBLE_DEVICES, such as "2,3". libdist does
// not set the environment variable.
func (r *ClusterResolver) GPUIDs() (string, error) {
	var u uses
	defer u.end()
	return u.address(func(room []byte) error {
		return r.ask(&u, func(native int64) error {
			return cdist.Dist_cluster_resolver_gpu_ids(native, room, int64(len(room)))
		})
	})
}

// Explain returns a description of each decision and its source, as lines of the form "subject: words" for
// people to read.
func (r *ClusterResolver) Explain() (text string, err error) {
	var u uses
	defer u.end()
	err = r.ask(&u, func(native int64) (err error) {
		text, err = written(func(text cdist.Text) error { return text.Explain_cluster(native) })
		return err
	})
	return text, err
}

// ClusterResolver returns the resolver that was set in Options.ClusterResolver, or nil if none was set. It is
// valid until the strategy is closed.
func (s *Strategy) ClusterResolver() (*ClusterResolver, error) {
	var u uses
	defer u.end()
	native := u.strategy(s)
	if u.err != nil {
		return nil, u.err
	}
	var resolver int64
	if err := cdist.Dist_strategy_cluster_resolver(native, &resolver); err != nil || resolver == 0 {
		return nil, fromNative(err)
	}
	r := &ClusterResolver{of: s, hosts: s.resolverHosts}
	r.open(resolver, nil, nil)
	return r, nil
}

// SlurmHosts returns the hosts of a Slurm host list such as "n[01-03],m1", in the order of scontrol show hostnames.
func SlurmHosts(hostList string) ([]string, error) {
	var u uses
	hostList = u.text(hostList)
	if u.err != nil {
		return nil, u.err
	}
	lines, err := written(func(text cdist.Text) error { return text.Expand_host_list(hostList) })
	if err != nil {
		return nil, err
	}
	hosts := strings.Split(lines, "\n")
	return hosts[:len(hosts)-1], nil
}

// SlurmTasksPerNode expands a Slurm list of task counts: "2(x3),1" becomes 2, 2, 2, 1.
func SlurmTasksPerNode(tasksPerNode string) ([]int, error) {
	var u uses
	tasksPerNode = u.text(tasksPerNode)
	if u.err != nil {
		return nil, u.err
	}
	return int32List(MaxClusterTasks, func(room []int32, found *uint64) error {
		return cdist.Dist_slurm_expand_tasks_per_node(tasksPerNode, &room[0], MaxClusterTasks, found)
	})
}
