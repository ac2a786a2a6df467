// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"context"
	"fmt"
	"testing"

	"libdist.example/dist"
)

// C has 32 bits for these: what they do not hold is refused by its name, and is no other number there.
func TestNumbersOfMoreThan32Bits(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2})
	topology := must[*dist.Topology](t)(dist.NewTopology([]int{1, 1, 1, 1}, [][][]int{{{0, 0, 0, 0}}}))
	defer topology.Close()
	assignment := must[*dist.DeviceAssignment](t)(topology.NewDeviceAssignment(1, nil))
	defer assignment.Close()
	tensor := must[*dist.Value](t)(s.NewTensor(dist.Of([]float32{1})))
	defer tensor.Close()
	variable := must[*dist.Variable](t)(s.NewVariable(dist.Of([]float32{1}), nil))
	defer variable.Close()
	list := []dist.Array{dist.Of([]float32{1})}
	second := func(_ any, err error) error { return err }
	third := func(_, _ any, err error) error { return err }
	inside := func(do func(r *dist.Replica, n int) error) func(int) error {
		return func(n int) error {
			return s.Run(context.Background(), func(r *dist.Replica) error { return do(r, n) })
		}
	}
	for name, call := range map[string]func(n int) error{
		"Options.Replicas": func(n int) error { return second(dist.New(dist.Options{Replicas: n})) },
		"Options.ReplicasOfWorkers[1]": func(n int) error {
			return second(dist.New(dist.Options{Kind: dist.MultiWorkerMirrored, ReplicasOfWorkers: []int{1, n}}))
		},
		"MeshAxis.Size": func(n int) error {
			return second(dist.New(dist.Options{Kind: dist.Mesh, Axes: []dist.MeshAxis{{Name: "x", Size: n}}}))
		},
		"CoordinatorOptions.MaxQueued": func(n int) error {
			return second(s.NewCoordinator(&dist.CoordinatorOptions{MaxQueued: n}))
		},
		"CoordinatorOptions.ClosuresPerWorker": func(n int) error {
			return second(s.NewCoordinator(&dist.CoordinatorOptions{ClosuresPerWorker: n}))
		},
		"CoordinatorOptions.MaxLosses": func(n int) error {
			return second(s.NewCoordinator(&dist.CoordinatorOptions{MaxLosses: n}))
		},
		"PSVariableOptions.MaxStaleness": func(n int) error {
			var c *dist.Coordinator
			return c.CreateVariable("v", list[0], &dist.PSVariableOptions{MaxStaleness: n})
		},
		"ServerOptions.NumThreads": func(n int) error { return second(dist.NewLocalServer(&dist.ServerOptions{NumThreads: n})) },
		"RPCServerOptions.NumThreads": func(n int) error {
			return second(dist.NewRPCServer("127.0.0.1:0", &dist.RPCServerOptions{NumThreads: n}))
		},
		"RPCServerOptions.MaxQueued": func(n int) error {
			return second(dist.NewRPCServer("127.0.0.1:0", &dist.RPCServerOptions{MaxQueued: n}))
		},
		"ReformOptions.MinWorkers": func(n int) error {
			return s.Reform(context.Background(), &dist.ReformOptions{MinWorkers: n})
		},
		"DatasetOptions.Prefetch": func(n int) error {
			return second(s.NewDataset(list, &dist.DatasetOptions{GlobalBatchSize: 1, Prefetch: n}))
		},
		"InputContext.InputPipelineID": func(n int) error {
			return second(dist.InputContext{NumInputPipelines: 1, InputPipelineID: n}.PerReplicaBatchSize(2))
		},
		"ResolverOptions.NumAccelerators": func(n int) error {
			return second(dist.NewTFConfigResolver(&dist.ResolverOptions{NumAccelerators: n}))
		},
		"SlurmOptions.PortBase": func(n int) error { return second(dist.NewSlurmResolver(dist.SlurmOptions{PortBase: n}, nil)) },
		"KubernetesOptions.Index": func(n int) error {
			return second(dist.NewKubernetesResolver(dist.KubernetesOptions{Index: &n}, nil))
		},
		"RendezvousOptions.Rank": func(n int) error {
			return second(dist.NewRendezvousResolver(context.Background(), dist.RendezvousOptions{Rank: &n}, nil))
		},
		"Partition.NumLogicalDevices": func(n int) error { return (&dist.Partition{NumLogicalDevices: n}).Check() },
		"meshShape[0]":                func(n int) error { return second(dist.NewTopology([]int{n}, nil)) },
		"numWorkers":                  func(n int) error { return second(dist.NewNetwork(n, nil)) },
		"numShards":                   func(n int) error { return second(dist.FixedShards([]int{4}, 0, n)) },
		"maxShards":                   func(n int) error { return second(dist.MaxSizeShards([]int{4}, 0, 4, 4, n)) },
		"worker":                      func(n int) error { return second(dist.BatchSizesForWorker(4, 2, 1, n, 2)) },
		"replicaIDs[0]":               func(n int) error { return second(s.NewGroup(n)) },
		"replicaID":                   func(n int) error { return second(s.Device(n)) },
		"index":                       func(n int) error { return second(variable.Device(n)) },
		"id":                          func(n int) error { return second(s.Enter(n)) },
		"axis":                        func(n int) error { return second(s.Gather(tensor, n)) },
		"axes[1]":                     func(n int) error { return second(s.Reduce(dist.Sum, tensor, 0, n)) },
		"replica":                     func(n int) error { return second(assignment.Coordinates(n, 0)) },
		"logicalDevice":               func(n int) error { return third(tensor.Shard(n)) },
		"Axis":                        inside(func(r *dist.Replica, n int) error { return r.AllGather(list, nil, dist.Axis(n)) }),
		"root":                        inside(func(r *dist.Replica, n int) error { return r.ReduceToRoot(dist.Sum, n, list, list) }),
		"destination":                 inside(func(r *dist.Replica, n int) error { return r.Permute(n, 0, list, list) }),
	} {
		for _, n := range []int{1 << 32, 1<<40 + 1, -1<<31 - 1} {
			fails(t, call(n), dist.ErrInvalidArgument, fmt.Sprintf("%s is %d: 32 bits do not hold it", name, n))
		}
	}
}
