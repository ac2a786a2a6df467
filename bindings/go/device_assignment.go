// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"cmp"

	"libdist.example/dist/internal/cdist"
)

// A DeviceAssignment maps the devices of a topology to the logical devices 0, 1, ... of the replicas 0, 1,
// ... Negative indices of replicas and logical devices count from the end, like coordinates: -1 is the last
// one.
type DeviceAssignment struct {
	object
	of *Strategy // owner of a borrowed handle; otherwise nil
}

func ownAssignment(native int64, err error) (*DeviceAssignment, error) {
	if err != nil {
		return nil, fromNative(err)
	}
	a := &DeviceAssignment{}
	a.open(native, cdist.Dist_device_assignment_destroy, nil)
	return a, nil
}

// AssignmentOptions configures [Topology.NewDeviceAssignment]. The zero value selects the defaults.
type AssignmentOptions struct {
	ComputationShape  []int       // shape of each replica's block of devices; nil = 1 in each direction
	ComputationStride []int       // distance of its devices in each direction; nil = 1 in each direction
	DeviceOrder       DeviceOrder // 0 = DeviceOrderAuto
}

// NewDeviceAssignment distributes replicas over the topology: each replica gets a block of devices. options
// may be nil. The caller must close the assignment.
func (t *Topology) NewDeviceAssignment(numReplicas int, options *AssignmentOptions) (*DeviceAssignment, error) {
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
		int32Of(int(cmp.Or(options.DeviceOrder, DeviceOrderAuto))), &out)
	return ownAssignment(out, err)
}

// NewDeviceAssignmentFromCores returns an assignment with explicit coordinates: coreAssignment[replica][logical
// device] is the position of that device. The caller must close the assignment.
func (t *Topology) NewDeviceAssignmentFromCores(coreAssignment [][][]int) (*DeviceAssignment, error) {
	var u uses
	defer u.end()
	topology := u.topology(t)
	rank := t.MeshRank()
	if len(coreAssignment) > 0 && len(coreAssignment[0]) > 0 {
		rank = len(coreAssignment[0][0]) // libdist rejects a rank that differs from the mesh's
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

// NewSingleCoreDeviceAssignment returns an assignment of one replica with one logical device, at (0, 0, 0, 0). The
// caller must close the assignment.
func (t *Topology) NewSingleCoreDeviceAssignment() (*DeviceAssignment, error) {
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

// Close releases the assignment. Strategies that use it keep it. Closing a nil or closed assignment does
// nothing.
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
	return u.takeMade(&a.object, "device assignment")
}

// Topology returns the topology with which the assignment was created. It is valid until the assignment is
// closed. Topology returns nil for a nil or closed assignment.
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

// NumReplicas returns the number of replicas; 0 for a nil or closed assignment.
func (a *DeviceAssignment) NumReplicas() int {
	var u uses
	defer u.end()
	return cdist.Dist_device_assignment_num_replicas(u.assignment(a))
}

// NumLogicalDevices returns the number of logical devices of each replica; 0 for a nil or closed assignment.
func (a *DeviceAssignment) NumLogicalDevices() int {
	var u uses
	defer u.end()
	return cdist.Dist_device_assignment_num_logical_devices(u.assignment(a))
}

// numbers returns the list that a query of the assignment writes.
func (a *DeviceAssignment) numbers(ask func(numbers cdist.Numbers, native int64) error) ([]int, error) {
	var u uses
	defer u.end()
	native := u.assignment(a)
	if u.err != nil {
		return nil, u.err
	}
	return numbersOf(func(n cdist.Numbers) error { return ask(n, native) })
}

// pair is numbers for a query about a logical device and another number.
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

// CoreAssignment returns the position of each logical device of each replica: [replica][logical device]. It
// is empty for a nil or closed assignment.
func (a *DeviceAssignment) CoreAssignment() [][][]int {
	all, _ := a.numbers(func(n cdist.Numbers, native int64) error {
		n.Device_assignment_core_assignment(native)
		return nil
	})
	return nested(all, a.NumReplicas(), a.NumLogicalDevices(), a.Topology().MeshRank())
}

// Coordinates returns the position of one logical device.
func (a *DeviceAssignment) Coordinates(replica, logicalDevice int) ([]int, error) {
	return a.pair("replica", replica, logicalDevice, cdist.Numbers.Device_assignment_coordinates)
}

// LookupReplicas returns the replicas whose logical device logicalDevice is in the given task, in ascending
// order. Unlike elsewhere, the two indices must not be negative.
func (a *DeviceAssignment) LookupReplicas(task, logicalDevice int) ([]int, error) {
	return a.pair("task", task, logicalDevice, cdist.Numbers.Device_assignment_lookup_replicas)
}

// Device returns the index of a logical device within its task, or -1 if the device is missing.
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

// DeviceName returns the name of a logical device, in the form of [Topology.DeviceNameAt].
func (a *DeviceAssignment) DeviceName(replica, logicalDevice int, job string) (string, error) {
	return a.name(replica, logicalDevice, job, cdist.Dist_device_assignment_device_name)
}

// HostName returns the name of the host of a logical device, in the form of [Topology.HostNameAt].
func (a *DeviceAssignment) HostName(replica, logicalDevice int, job string) (string, error) {
	return a.name(replica, logicalDevice, job, cdist.Dist_device_assignment_host_name)
}
