// SPDX-License-Identifier: Apache-2.0

package dist

import "libdist.example/dist/internal/cdist"

// ResolverFunctions implements a resolver with functions of the program; see [NewHostResolver]. Spec is
// required. If another function is nil, the corresponding option is used, or the answer is not known. Options
// take precedence over functions. libdist may call the functions from several goroutines at the same time.
// They may call libdist, but must not query the resolver itself.
type ResolverFunctions struct {
	// Spec returns the cluster. The function keeps ownership of the spec.
	Spec     func() (*ClusterSpec, error)
	TaskType func() (taskType string, isSet bool, err error) // returns the job of this process
	// TaskID returns the index of this process in its job; TaskUnset = not known.
	TaskID      func() (int, error)
	RPCLayer    func() (layer string, isSet bool, err error)       // returns the prefix of addresses
	Environment func() (environment string, isSet bool, err error) // returns the platform on which the cluster runs
	// Master returns the same as [ClusterResolver.Master]; "" and TaskUnset mean that no task is given. If it is
	// nil, the result is the address of the task, or "" if no task is given.
	Master          func(taskType string, taskID int, rpcLayer *string) (string, error)
	NumAccelerators func(taskType string, taskID int) (int, error) // nil = the number in the options
}

// hostAnswer is the object behind the token of resolver functions.
type hostAnswer struct {
	functions ResolverFunctions
	failures
}

// NewHostResolver returns a resolver that calls functions of the program. options may be nil. The caller must
// close the resolver.
func NewHostResolver(functions ResolverFunctions, options *ResolverOptions) (*ClusterResolver, error) {
	var u uses
	defer u.end()
	host := &hostAnswer{functions: functions}
	answered := 0
	for question, given := range map[int]bool{
		cdist.RESOLVER_SPEC:             functions.Spec != nil,
		cdist.RESOLVER_TASK_TYPE:        functions.TaskType != nil,
		cdist.RESOLVER_TASK_ID:          functions.TaskID != nil,
		cdist.RESOLVER_RPC_LAYER:        functions.RPCLayer != nil,
		cdist.RESOLVER_ENVIRONMENT:      functions.Environment != nil,
		cdist.RESOLVER_ADDRESS:          functions.Master != nil,
		cdist.RESOLVER_NUM_ACCELERATORS: functions.NumAccelerators != nil,
	} {
		if given {
			answered |= 1 << question
		}
	}
	token := register(host)
	r, err := newResolver(&u, options, []*hostAnswer{host},
		func(options cdist.Dist_cluster_resolver_options, out *int64) error {
			return cdist.Cluster_resolver_create_host(token, answered, options, out)
		})
	if err != nil {
		forget(token)
	}
	return r, err
}

func init() {
	cdist.Set_resolver_callbacks(cdist.NewDirectorResolverCallbacks(resolverCallbacks{}))
}

// resolverCallbacks receives the calls of libdist for the program's own resolvers. No panic may escape from
// it.
type resolverCallbacks struct{}

// Answer answers one query.
func (resolverCallbacks) Answer(token int64, question int, taskType string, taskID int, layer string,
	answer cdist.ResolverAnswer) int {
	host := registered[*hostAnswer](token)
	return host.callback(func() error {
		var rpcLayer *string
		if answer.Has_rpc_layer() != 0 {
			rpcLayer = &layer
		}
		return host.answer(question, taskType, taskID, rpcLayer, answer)
	})
}

func (h *hostAnswer) answer(question int, taskType string, taskID int, rpcLayer *string,
	answer cdist.ResolverAnswer) error {
	var u uses
	defer u.end()
	texts := map[int]func() (string, bool, error){
		cdist.RESOLVER_TASK_TYPE:   h.functions.TaskType,
		cdist.RESOLVER_RPC_LAYER:   h.functions.RPCLayer,
		cdist.RESOLVER_ENVIRONMENT: h.functions.Environment,
		cdist.RESOLVER_ADDRESS: func() (string, bool, error) {
			text, err := h.functions.Master(taskType, taskID, rpcLayer)
			return text, true, err
		},
	}
	switch question {
	case cdist.RESOLVER_SPEC:
		spec, err := h.functions.Spec()
		if err != nil {
			return err
		}
		if spec == nil {
			return newError(ErrInvalidArgument, "Spec gave no cluster spec")
		}
		native := u.spec(spec)
		if u.err != nil {
			return u.err
		}
		var copy int64
		if err := cdist.Dist_cluster_spec_union([]int64{native}, 1, &copy); err != nil {
			return fromNative(err)
		}
		answer.Set_spec(copy)
	case cdist.RESOLVER_TASK_ID:
		id, err := h.functions.TaskID()
		if err != nil {
			return err
		}
		answer.Set_number(u.taskID(id))
	case cdist.RESOLVER_NUM_ACCELERATORS:
		number, err := h.functions.NumAccelerators(taskType, taskID)
		if err != nil {
			return err
		}
		answer.Set_number(u.int32("NumAccelerators", number))
	default:
		text, isSet, err := texts[question]()
		if err != nil {
			return err
		}
		if text = u.text(text); isSet && u.err == nil {
			answer.Set_text(text)
		}
	}
	return u.err
}
