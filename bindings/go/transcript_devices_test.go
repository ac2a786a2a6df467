// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"fmt"
	"slices"
	"strings"

	"libdist.example/dist"
)

func (p *player) topology(l *line) *dist.Topology { return get[*dist.Topology](p, l.given["topology"]) }
func (p *player) assignment(l *line) *dist.DeviceAssignment {
	return get[*dist.DeviceAssignment](p, l.given["assignment"])
}

// nested are flat coordinates as [row][column].
func (f fields) nested(key, rows, columns string) [][][]int {
	numbers, rank := f.ints(key), f.int("ndim")
	all := make([][][]int, f.int(rows))
	for i := range all {
		all[i] = make([][]int, f.int(columns))
		for j := range all[i] {
			n := min(rank, len(numbers))
			all[i][j], numbers = numbers[:n], numbers[n:]
		}
	}
	return all
}

// ints compares numbers, which Go may have nested, with a flat array; "-" is an empty one.
func (a *answer) ints(key string, got any) {
	literal := strings.NewReplacer("[", "", "]", "").Replace(fmt.Sprint(got))
	if a.line.answered[key] == "-" && literal == "" {
		literal = "-"
	} else {
		literal = "(" + strings.Join(strings.Fields(literal), " ") + ")"
	}
	a.is(key, literal)
}

// number is one that a question gave.
func (a *answer) number(out int, err error) error {
	if err == nil {
		a.int("out", out)
	}
	return err
}

// name is a text that a question gave.
func (a *answer) name(out string, err error) error {
	if err == nil {
		a.text("out", out)
	}
	return err
}

func (a *answer) coordinates(out []int, err error) error {
	if err == nil {
		a.ints("out", out)
	}
	return err
}

func (a *answer) topology(out *dist.Topology, err error) error {
	if err == nil {
		a.object("out", out, out == nil)
	}
	return err
}

func (a *answer) assignment(out *dist.DeviceAssignment, err error) error {
	if err == nil {
		a.object("out", out, out == nil)
	}
	return err
}

var topologyCalls = map[string]func(p *player, l *line, a *answer) error{
	"topology_create": func(p *player, l *line, a *answer) error {
		return a.topology(dist.NewTopology(l.given.ints("mesh_shape"),
			l.given.nested("device_coordinates", "num_tasks", "num_devices_per_task")))
	},
	"topology_destroy": func(p *player, l *line, _ *answer) error {
		p.topology(l).Close()
		return nil
	},
	"topology_mesh_rank":    func(p *player, l *line, a *answer) error { return a.number(p.topology(l).MeshRank(), nil) },
	"topology_num_tasks":    func(p *player, l *line, a *answer) error { return a.number(p.topology(l).NumTasks(), nil) },
	"topology_mesh_shape":   func(p *player, l *line, a *answer) error { return a.coordinates(p.topology(l).MeshShape(), nil) },
	"topology_task_at":      func(p *player, l *line, a *answer) error { return a.number(p.topology(l).TaskAt(l.at())) },
	"topology_device_at":    func(p *player, l *line, a *answer) error { return a.number(p.topology(l).DeviceAt(l.at())) },
	"topology_host_name_at": hostNameAt,
	"topology_device_name_at": func(p *player, l *line, a *answer) error {
		return a.name(p.topology(l).DeviceNameAt(l.at(), l.given.text("job")))
	},
	"topology_num_devices_per_task": func(p *player, l *line, a *answer) error {
		return a.number(p.topology(l).NumDevicesPerTask(), nil)
	},
	"topology_num_missing_devices": func(p *player, l *line, a *answer) error {
		return a.number(p.topology(l).NumMissingDevices(), nil)
	},
	"topology_device_coordinates": func(p *player, l *line, a *answer) error {
		a.ints("out", p.topology(l).DeviceCoordinates())
		return nil
	},
	"topology_missing_devices": func(p *player, l *line, a *answer) error {
		a.ints("out", p.topology(l).MissingDevices())
		return nil
	},
}

func (l *line) at() []int { return l.given.ints("coordinates") }

func hostNameAt(p *player, l *line, a *answer) error {
	return a.name(p.topology(l).HostNameAt(l.at(), l.given.text("job")))
}

// device are the two numbers by which an assignment is asked.
func (l *line) device() (replica, logicalDevice int) {
	return l.given.int("replica"), l.given.int("logical_device")
}

var assignmentCalls = map[string]func(p *player, l *line, a *answer) error{
	"device_assignment_build": func(p *player, l *line, a *answer) error {
		return a.assignment(p.topology(l).NewDeviceAssignment(l.given.int("num_replicas"), &dist.AssignmentOptions{
			ComputationShape:  l.given.ints("computation_shape"),
			ComputationStride: l.given.ints("computation_stride"),
			DeviceOrder:       dist.DeviceOrder(l.given.int("device_order")),
		}))
	},
	"device_assignment_create": func(p *player, l *line, a *answer) error {
		return a.assignment(p.topology(l).NewDeviceAssignmentFromCores(
			l.given.nested("core_assignment", "num_replicas", "num_logical_devices")))
	},
	"device_assignment_create_single": func(p *player, l *line, a *answer) error {
		return a.assignment(p.topology(l).NewSingleCoreDeviceAssignment())
	},
	"device_assignment_destroy": func(p *player, l *line, _ *answer) error {
		p.assignment(l).Close()
		return nil
	},
	"device_assignment_num_replicas": func(p *player, l *line, a *answer) error {
		return a.number(p.assignment(l).NumReplicas(), nil)
	},
	"device_assignment_num_logical_devices": func(p *player, l *line, a *answer) error {
		return a.number(p.assignment(l).NumLogicalDevices(), nil)
	},
	"device_assignment_core_assignment": func(p *player, l *line, a *answer) error {
		a.ints("out", p.assignment(l).CoreAssignment())
		return nil
	},
	"device_assignment_coordinates": func(p *player, l *line, a *answer) error {
		return a.coordinates(p.assignment(l).Coordinates(l.device()))
	},
	"device_assignment_device": func(p *player, l *line, a *answer) error {
		return a.number(p.assignment(l).Device(l.device()))
	},
	"device_assignment_device_name": func(p *player, l *line, a *answer) error {
		replica, device := l.device()
		return a.name(p.assignment(l).DeviceName(replica, device, l.given.text("job")))
	},
	"device_assignment_host_name": func(p *player, l *line, a *answer) error {
		replica, device := l.device()
		return a.name(p.assignment(l).HostName(replica, device, l.given.text("job")))
	},
	"device_assignment_lookup_replicas": func(p *player, l *line, a *answer) error {
		return a.coordinates(p.assignment(l).LookupReplicas(l.given.int("task"), l.given.int("logical_device")))
	},
}

func (l *line) partition() *dist.Partition {
	return &dist.Partition{
		Kind:              dist.PartitionKind(l.given.int("partition.kind")),
		Shape:             l.given.ints("partition.shape"),
		Dimensions:        l.given.ints("partition.dimensions"),
		NumLogicalDevices: l.given.int("partition.num_logical_devices"),
		LogicalDevice:     l.given.int("partition.logical_device"),
		Uneven:            l.given.int("partition.uneven") != 0,
		SPMD:              l.given.int("partition.spmd") != 0,
	}
}

var partitionCalls = map[string]func(p *player, l *line, a *answer) error{
	"partition_check": func(_ *player, l *line, _ *answer) error { return l.partition().Check() },
	"partition_shard": func(_ *player, l *line, a *answer) error {
		shard, err := l.partition().Shard(l.given.int("logical_device"))
		if err == nil {
			a.ints("out.tile", shard.Tile)
			a.ints("out.begin", shard.Begin)
			a.ints("out.size", shard.Size)
			a.int("out.elements", shard.Elements)
		}
		return err
	},
	"split_to_logical_devices": func(p *player, l *line, a *answer) error {
		return a.made(p.theReplica(l).SplitToLogicalDevices(p.theValue(l, "value"), l.given.ints("partition_dimensions"),
			&dist.SplitOptions{Uneven: l.given.int("options.uneven") != 0}))
	},
	"assign_to_logical_device": func(p *player, l *line, a *answer) error {
		return a.made(p.theReplica(l).AssignToLogicalDevice(p.theValue(l, "value"), l.given.int("logical_device")))
	},
	"replicate_to_logical_devices": func(p *player, l *line, a *answer) error {
		return a.made(p.theReplica(l).ReplicateToLogicalDevices(p.theValue(l, "value")))
	},
	"value_shard": func(p *player, l *line, a *answer) error {
		shard, begin, err := p.theValue(l, "value").Shard(l.given.int("logical_device"))
		if err == nil {
			a.ints("out.begin", begin)
			a.tensor("out", dense(shard))
		}
		return err
	},
}

// dense is a view without its gaps.
func dense(view dist.RawTensor) dist.RawTensor {
	if view.Strides == nil {
		return view
	}
	size := view.DType.Size()
	out := dist.RawTensor{DType: view.DType, Shape: view.Shape, Data: []byte{}}
	var walk func(dimension, at int)
	walk = func(dimension, at int) {
		if dimension == len(view.Shape) {
			out.Data = append(out.Data, view.Data[at*size:(at+1)*size]...)
			return
		}
		for i := range view.Shape[dimension] {
			walk(dimension+1, at+i*view.Strides[dimension])
		}
	}
	if !slices.Contains(view.Shape, 0) {
		walk(0, 0)
	}
	return out
}

// matchesSharded says what is different of a sharded tensor: first comes the whole, then each logical device's part.
func (p *player) matchesSharded(expected []tree, v *dist.Value) error {
	if v.Kind() != dist.ShardedValue || len(expected) != v.Len()+1 {
		return fmt.Errorf("is %.200s, expected a sharded tensor on %d devices", v, len(expected)-1)
	}
	whole, err := v.Tensor()
	if err != nil {
		return err
	}
	if err := sameTensor(expected[0].word, dense(whole)); err != nil {
		return err
	}
	for i, item := range v.Items() {
		part := expected[i+1].word
		if item.Kind() == dist.NoneValue {
			if part != "none" {
				return fmt.Errorf("logical device %d has nothing, expected %s", i, part)
			}
			continue
		}
		shard, _, err := v.Shard(i)
		if err != nil {
			return err
		}
		if err := sameTensor(part, dense(shard)); err != nil {
			return fmt.Errorf("logical device %d: %w", i, err)
		}
	}
	return nil
}
