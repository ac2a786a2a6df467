// SPDX-License-Identifier: Apache-2.0

package dist

import "libdist.example/dist/internal/cdist"

// DeviceAssignment says which devices of a topology are logical device 0, 1, ... of replica 0, 1, ... Indices of replicas
// and logical devices may count from the end, as coordinates may: -1 is the last one.
type DeviceAssignment struct {
	object
	of *Strategy // whose it is, where it is borrowed
}

func ownAssignment(native int64, err error) (*DeviceAssignment, error) {
	if err != nil {
		return nil, fromNative(err)
	}
	a := &DeviceAssignment{}
	a.open(native, cdist.Dist_device_assignment_destroy, nil)
	return a, nil
}

// AssignmentOptions are the rare choices of BuildDeviceAssignment; zero fields mean the default.
type AssignmentOptions struct {
	ComputationShape  []int // of each replica's block of devices; nil: 1 everywhere
	ComputationStride []int // how far apart its devices are in each direction; nil: 1 everywhere
	DeviceOrder       DeviceOrder
}

// BuildDeviceAssignment lays replicas out over a topology: each gets a block of devices. options may be nil.
func BuildDeviceAssignment(t *Topology, numReplicas int, options *AssignmentOptions) (*DeviceAssignment, error) {
	var u uses
	defer u.end()
	topology := u.topology(t)
	if options == nil {
		options = &AssignmentOptions{}
	}
	shape, stride := options.ComputationShape, options.ComputationStride
	if shape != nil && stride != nil && len(shape) != len(stride) {
		u.fail(newError(ErrInvalidArgument, "the computation's shape has %d numbers, its stride %d", len(shape), len(stride)))
	}
	shape32, stride32 := u.int32s("ComputationShape", shape), u.int32s("ComputationStride", stride)
	replicas := u.int32("numReplicas", numReplicas)
	if u.err != nil {
		return nil, u.err
	}
	var out int64
	err := cdist.Dist_device_assignment_build(topology, shape32, stride32, int64(max(len(shape), len(stride))), replicas,
		int32Of(int(options.DeviceOrder)), &out)
	return ownAssignment(out, err)
}

// NewDeviceAssignment makes an assignment by hand: coreAssignment[replica][logical device] is where that is.
func NewDeviceAssignment(t *Topology, coreAssignment [][][]int) (*DeviceAssignment, error) {
	var u uses
	defer u.end()
	topology := u.topology(t)
	rank := t.MeshRank()
	if len(coreAssignment) > 0 && len(coreAssignment[0]) > 0 {
		rank = len(coreAssignment[0][0]) // another than the mesh's is libdist's to refuse
	}
	coordinates, devices, err := flat(coreAssignment, rank, "replica", "logical device")
	u.fail(err)
	if u.err != nil {
		return nil, u.err
	}
	var out int64
	err = cdist.Dist_device_assignment_create(topology, coordinates, len(coreAssignment), devices, int64(rank), &out)
	return ownAssignment(out, err)
}

// SingleCoreAssignment is one replica of one logical device, at (0, 0, 0, 0).
func SingleCoreAssignment(t *Topology) (*DeviceAssignment, error) {
	var u uses
	defer u.end()
	topology := u.topology(t)
	if u.err != nil {
		return nil, u.err
	}
	var out int64
	err := cdist.Dist_device_assignment_create_single(topology, &out)
	return ownAssignment(out, err)
}

// Close gives the assignment up; strategies made with it go on. Closing twice, and nil, are fine.
func (a *DeviceAssignment) Close() error {
	if a != nil {
		a.close()
	}
	return nil
}

func (u *uses) assignment(a *DeviceAssignment) int64 {
	if a == nil || a.of != nil && u.strategy(a.of) == 0 {
		return 0
	}
	return u.take(&a.object, "device assignment")
}

// Topology is the one that the assignment was made with; it ends with the assignment. nil for nil and for a closed one.
func (a *DeviceAssignment) Topology() *Topology {
	var u uses
	defer u.end()
	native := cdist.Dist_device_assignment_topology(u.assignment(a))
	if native == 0 {
		return nil
	}
	t := &Topology{of: a}
	t.open(native, nil, nil)
	return t
}

// NumReplicas is the number of replicas; 0 for nil and for a closed one.
func (a *DeviceAssignment) NumReplicas() int {
	var u uses
	defer u.end()
	return cdist.Dist_device_assignment_num_replicas(u.assignment(a))
}

// NumLogicalDevices is the number of logical devices of each replica; 0 for nil and for a closed one.
func (a *DeviceAssignment) NumLogicalDevices() int {
	var u uses
	defer u.end()
	return cdist.Dist_device_assignment_num_logical_devices(u.assignment(a))
}

// numbers is a list that a question about the assignment gives.
func (a *DeviceAssignment) numbers(ask func(numbers cdist.Numbers, native int64) error) ([]int, error) {
	var u uses
	defer u.end()
	native := u.assignment(a)
	if u.err != nil {
		return nil, u.err
	}
	return numbersOf(func(n cdist.Numbers) error { return ask(n, native) })
}

// pair is numbers for a question about a logical device of something else.
func (a *DeviceAssignment) pair(name string, n, logicalDevice int,
	ask func(numbers cdist.Numbers, native int64, n, logicalDevice int) error) ([]int, error) {
	return a.numbers(func(numbers cdist.Numbers, native int64) error {
		var u uses
		n, logicalDevice := u.int32(name, n), u.int32("logicalDevice", logicalDevice)
		if u.err != nil {
			return u.err
		}
		return ask(numbers, native, n, logicalDevice)
	})
}

// CoreAssignment is where each logical device of each replica is: [replica][logical device]; empty for nil and for a
// closed one.
func (a *DeviceAssignment) CoreAssignment() [][][]int {
	all, _ := a.numbers(func(n cdist.Numbers, native int64) error {
		n.Device_assignment_core_assignment(native)
		return nil
	})
	return nested(all, a.NumReplicas(), a.NumLogicalDevices(), a.Topology().MeshRank())
}

// Coordinates are where one logical device is.
func (a *DeviceAssignment) Coordinates(replica, logicalDevice int) ([]int, error) {
	return a.pair("replica", replica, logicalDevice, cdist.Numbers.Device_assignment_coordinates)
}

// LookupReplicas are the replicas that have their logical device `logicalDevice` in a task, ascending. These two are no
// indices from the end.
func (a *DeviceAssignment) LookupReplicas(task, logicalDevice int) ([]int, error) {
	return a.pair("task", task, logicalDevice, cdist.Numbers.Device_assignment_lookup_replicas)
}

// Device is which device of its task a logical device is; -1 where it is missing.
func (a *DeviceAssignment) Device(replica, logicalDevice int) (int, error) {
	var u uses
	defer u.end()
	native, replica, logicalDevice := u.assignment(a), u.int32("replica", replica), u.int32("logicalDevice", logicalDevice)
	if u.err != nil {
		return 0, u.err
	}
	var out int32
	err := cdist.Dist_device_assignment_device(native, replica, logicalDevice, &out)
	return int(out), fromNative(err)
}

func (a *DeviceAssignment) name(replica, logicalDevice int, job string,
	ask func(native int64, replica, logicalDevice int, job string, room []byte, size int64) error) (string, error) {
	var u uses
	defer u.end()
	native, replica, logicalDevice := u.assignment(a), u.int32("replica", replica), u.int32("logicalDevice", logicalDevice)
	if u.err != nil {
		return "", u.err
	}
	return nameIn(job, func(room []byte) error {
		return ask(native, replica, logicalDevice, job, room, int64(len(room)))
	})
}

// DeviceName is a logical device's name, as Topology.DeviceNameAt.
func (a *DeviceAssignment) DeviceName(replica, logicalDevice int, job string) (string, error) {
	return a.name(replica, logicalDevice, job, cdist.Dist_device_assignment_device_name)
}

// HostName is the name of a logical device's host, as Topology.HostNameAt.
func (a *DeviceAssignment) HostName(replica, logicalDevice int, job string) (string, error) {
	return a.name(replica, logicalDevice, job, cdist.Dist_device_assignment_host_name)
}
