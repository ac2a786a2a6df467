// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"strings"

	"libdist.example/dist/internal/cdist"
)

// ClusterResolver says which cluster a process is part of, and which task of it the process is. Several goroutines may ask
// at once; but whoever sets environment variables must not do so while another goroutine makes a resolver, or asks one of
// TF_CONFIG.
type ClusterResolver struct {
	object
	of    *Strategy     // whose it is, where it is borrowed
	hosts []*hostAnswer // the program's own resolvers in it
}

// ResolverOptions are what is given to a resolver, which counts before what it finds. nil fields are not given; Given makes
// a pointer.
type ResolverOptions struct {
	TaskType        *string // the job of this process
	TaskID          *int    // its index in it
	NumAccelerators int     // of this process; 0: none, or those that Slurm's options give
	RPCLayer        *string // "grpc": put before addresses, with ://; "": nothing is
	Environment     *string // "google", "": a word for where the cluster runs
	SessionAddress  *string // what Master gives where no task is asked for; of NewSimpleResolver alone
	TFConfig        *string // TF_CONFIG; nil: the environment variable
}

// Given is a pointer to a value, for options that may not be given.
func Given[T any](value T) *T { return &value }

// native are the options on C's side, to be deleted; nil for nil.
func (o *ResolverOptions) native(u *uses) cdist.Dist_cluster_resolver_options {
	if o == nil {
		return nil
	}
	native := cdist.NewDist_cluster_resolver_options()
	if o.TaskID != nil {
		native.SetHas_task_id(1)
		native.SetTask_id(u.taskID(*o.TaskID))
	}
	native.SetNum_accelerators(u.int32("ResolverOptions.NumAccelerators", o.NumAccelerators))
	u.ifGiven(o.TaskType, native.Set_task_type)
	u.ifGiven(o.RPCLayer, native.Set_rpc_layer)
	u.ifGiven(o.Environment, native.SetEnvironment)
	u.ifGiven(o.SessionAddress, native.SetSession_address)
	u.ifGiven(o.TFConfig, native.SetTf_config)
	return native
}

// ifGiven sets a text that may not be given.
func (u *uses) ifGiven(text *string, set func(string)) {
	if text != nil {
		set(u.text(*text))
	}
}

// newResolver makes a resolver with options.
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
	r.open(out, cdist.Dist_cluster_resolver_destroy, nil)
	return r, nil
}

// NewSimpleResolver makes a resolver of a spec that is given. options may be nil, here as below.
func NewSimpleResolver(spec *ClusterSpec, options *ResolverOptions) (*ClusterResolver, error) {
	var u uses
	defer u.end()
	native := u.spec(spec)
	return newResolver(&u, options, nil, func(options cdist.Dist_cluster_resolver_options, out *int64) error {
		return cdist.Dist_cluster_resolver_create_simple(native, options, out)
	})
}

// NewTFConfigResolver makes a resolver of TF_CONFIG. The environment variable is read at each question.
func NewTFConfigResolver(options *ResolverOptions) (*ClusterResolver, error) {
	var u uses
	return newResolver(&u, options, nil, cdist.Dist_cluster_resolver_create_tf_config)
}

// SlurmOptions are what Slurm says of a step. What is not given is read of the environment variable that is named.
type SlurmOptions struct {
	Rank            *int       // of this process in the step; nil: SLURM_PROCID
	NumTasks        int        // of the step; 0: SLURM_STEP_NUM_TASKS, where no jobs are given
	HostList        *string    // "n[01-03,7],m1"; nil: SLURM_STEP_NODELIST
	TasksPerNode    *string    // "2(x3),1", by the order of HostList; nil: SLURM_STEP_TASKS_PER_NODE
	TasksOnEachHost int        // 0: as TasksPerNode says
	PortBase        int        // the port of the first task of a host; 0: 8888
	GPUsPerHost     int        // 0: none, and they are not shared out
	GPUsPerTask     int        // 0: as many as all tasks of a host can have
	Jobs            []SlurmJob // nil: one job, "worker", of all tasks
}

// SlurmJob is how many of a step's tasks a job has.
type SlurmJob struct {
	Name     string
	NumTasks int
}

// NewSlurmResolver makes a resolver of a step of Slurm's. What the environment says is read here, once.
func NewSlurmResolver(slurm SlurmOptions, options *ResolverOptions) (*ClusterResolver, error) {
	var u uses
	native := cdist.NewDist_slurm_options()
	defer cdist.DeleteDist_slurm_options(native)
	if slurm.Rank != nil {
		native.SetHas_rank(1)
		native.SetRank(u.taskID(*slurm.Rank))
	}
	native.SetNum_tasks(u.int32("SlurmOptions.NumTasks", slurm.NumTasks))
	u.ifGiven(slurm.HostList, native.SetHost_list)
	u.ifGiven(slurm.TasksPerNode, native.SetTasks_per_node)
	native.SetTasks_on_each_host(u.int32("SlurmOptions.TasksOnEachHost", slurm.TasksOnEachHost))
	native.SetPort_base(u.int32("SlurmOptions.PortBase", slurm.PortBase))
	native.SetGpus_per_host(u.int32("SlurmOptions.GPUsPerHost", slurm.GPUsPerHost))
	native.SetGpus_per_task(u.int32("SlurmOptions.GPUsPerTask", slurm.GPUsPerTask))
	jobs := cdist.NewClusterJobs()
	defer cdist.DeleteClusterJobs(jobs)
	for _, job := range slurm.Jobs {
		jobs.Add(u.text(job.Name), nil, nil, int64(job.NumTasks))
	}
	if slurm.Jobs != nil {
		native.Set_jobs(jobs)
	}
	return newResolver(&u, options, nil, func(options cdist.Dist_cluster_resolver_options, out *int64) error {
		return cdist.Dist_cluster_resolver_create_slurm(native, options, out)
	})
}

// KubernetesOptions are what the names of Kubernetes' pods say. What is not given is read of the environment variable that
// is named.
type KubernetesOptions struct {
	Index      *int    // of this pod; nil: JOB_COMPLETION_INDEX, else the number at the end of the host's name
	NumWorkers int     // 0: WORLD_SIZE
	FirstIndex int     // of the pods: a StatefulSet's .spec.ordinals.start
	Port       int     // of every worker; 0: 8888
	HostName   *string // of this pod, "trainer-2"; nil: HOSTNAME
	Service    *string // the headless service; nil: pods are found by their host's name alone
	Namespace  *string // of the service, with it alone; nil: POD_NAMESPACE, where that is set
	Domain     *string // of the Kubernetes cluster, "cluster.local", with a namespace; nil: left out
}

// NewKubernetesResolver makes a resolver of the names that the pods of a StatefulSet or an Indexed Job have. What the
// environment says is read here, once.
func NewKubernetesResolver(pods KubernetesOptions, options *ResolverOptions) (*ClusterResolver, error) {
	var u uses
	native := cdist.NewDist_kubernetes_options()
	defer cdist.DeleteDist_kubernetes_options(native)
	if pods.Index != nil {
		native.SetHas_index(1)
		native.SetIndex(u.int32("KubernetesOptions.Index", *pods.Index))
	}
	native.SetNum_workers(u.int32("KubernetesOptions.NumWorkers", pods.NumWorkers))
	native.SetFirst_index(u.int32("KubernetesOptions.FirstIndex", pods.FirstIndex))
	native.SetPort(u.int32("KubernetesOptions.Port", pods.Port))
	u.ifGiven(pods.HostName, native.SetHost_name)
	u.ifGiven(pods.Service, native.SetService)
	u.ifGiven(pods.Namespace, native.SetName_space)
	u.ifGiven(pods.Domain, native.SetDomain)
	return newResolver(&u, options, nil, func(options cdist.Dist_cluster_resolver_options, out *int64) error {
		return cdist.Dist_cluster_resolver_create_kubernetes(native, options, out)
	})
}

// NewUnionResolver makes one resolver of several: the spec is ClusterSpecUnion of theirs, all else the first one's, unless
// options give it.
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

// Close gives the resolver up; strategies and unions that have it go on. Closing twice, and nil, are fine.
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
	return u.take(&r.object, "cluster resolver")
}

// ask is a question to the resolver; what a function of the program's failed with comes out as it is.
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

// Spec is the cluster. A resolver of a spec gives that one again.
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

// TaskType is the job of this process; not set: it is not known.
func (r *ClusterResolver) TaskType() (taskType string, isSet bool, err error) {
	return r.text(cdist.Dist_cluster_resolver_task_type)
}

// TaskID is the index of this process in its job; TaskUnset: it is not known.
func (r *ClusterResolver) TaskID() (int, error) {
	var u uses
	defer u.end()
	out := int32(TaskUnset)
	err := r.ask(&u, func(native int64) error { return cdist.Dist_cluster_resolver_task_id(native, &out) })
	return int(out), err
}

// RPCLayer is what stands before addresses; not set: nothing is known.
func (r *ClusterResolver) RPCLayer() (layer string, isSet bool, err error) {
	return r.text(cdist.Dist_cluster_resolver_rpc_layer)
}

// Environment is a word for where the cluster runs; not set: none.
func (r *ClusterResolver) Environment() (environment string, isSet bool, err error) {
	return r.text(cdist.Dist_cluster_resolver_environment)
}

// Master is where to connect to for a task, "grpc://host:port". rpcLayer nil is the resolver's; "" is none. Without a task,
// which is "" and TaskUnset, it is what kind of resolver it is that says the answer: see dist_cluster_resolver_master() in
// libdist's headers.
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

// NumAccelerators is how many accelerators a task has; without one ("" and TaskUnset), this process.
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

// GPUIDs are the GPUs of this process as CUDA_VISIBLE_DEVICES has them, "2,3"; libdist does not set it.
func (r *ClusterResolver) GPUIDs() (string, error) {
	var u uses
	defer u.end()
	return u.address(func(room []byte) error {
		return r.ask(&u, func(native int64) error {
			return cdist.Dist_cluster_resolver_gpu_ids(native, room, int64(len(room)))
		})
	})
}

// Explain says what was decided, and from where: lines of "subject: words", for people.
func (r *ClusterResolver) Explain() (text string, err error) {
	var u uses
	defer u.end()
	err = r.ask(&u, func(native int64) (err error) {
		text, err = written(func(text cdist.Text) error { return text.Explain_cluster(native) })
		return err
	})
	return text, err
}

// ClusterResolver is Options.ClusterResolver; it ends with the strategy. nil where that was not given.
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

// SlurmHosts are the hosts of a list as Slurm writes them: "n[01-03],m1".
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

// SlurmTasksPerNode are the numbers of a list as Slurm writes them: "2(x3),1" is 2, 2, 2, 1.
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
