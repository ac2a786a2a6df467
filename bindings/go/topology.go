// SPDX-License-Identifier: Apache-2.0

package dist

import "libdist.example/dist/internal/cdist"

// A Topology describes the positions (x, y, z, core) of devices in a mesh, and the task of each device.
// Coordinates are slices of four numbers. A coordinate of -1 is the last one in its direction, and -2 is the
// one before it.
type Topology struct {
	object
	of *DeviceAssignment // owner of a borrowed handle; otherwise nil
}

func ownTopology(native int64, err error) (*Topology, error) {
	if err != nil {
		return nil, fromNative(err)
	}
	t := &Topology{}
	t.open(native, cdist.Dist_topology_destroy, nil)
	return t, nil
}

// NewTopology returns a topology with explicit coordinates: deviceCoordinates[task][device] is the position
// of that device. All tasks must have the same number of devices. Positions without a device are allowed. If
// two devices have the same position, the later one takes it. Here and in the functions below, the caller
// must close the topology.
func NewTopology(meshShape []int, deviceCoordinates [][][]int) (*Topology, error) {
	coordinates, devices, err := flat(deviceCoordinates, len(meshShape), "task", "device")
	if err != nil {
		return nil, err
	}
	var u uses
	shape := u.int32s("meshShape", meshShape)
	if u.err != nil {
		return nil, u.err
	}
	var out int64
	err = cdist.Dist_topology_create(shape, int64(len(meshShape)), coordinates,
		len(deviceCoordinates), devices, nil, &out)
	return ownTopology(out, err)
}

// NewHostTopology returns a topology of the CPUs that this process may use: x is the package, y the NUMA
// domain in it, z the core in that, and core the hardware thread of the core.
func NewHostTopology() (*Topology, error) {
	var out int64
	err := cdist.Dist_topology_from_host(nil, &out)
	return ownTopology(out, err)
}

// Close releases the topology. Assignments that use it keep it. Closing a nil or closed topology does
// nothing.
func (t *Topology) Close() error {
	if t != nil {
		t.close()
	}
	return nil
}

func (u *uses) topology(t *Topology) int64 {
	if t == nil || t.of != nil && u.assignment(t.of) == 0 {
		return 0
	}
	return u.take(&t.object, "topology")
}

// MeshRank returns the number of dimensions of the mesh, 4; 0 for a nil or closed topology.
func (t *Topology) MeshRank() int {
	var u uses
	defer u.end()
	return cdist.Dist_topology_mesh_rank(u.topology(t))
}

// NumTasks returns the number of tasks; 0 for a nil or closed topology.
func (t *Topology) NumTasks() int {
	var u uses
	defer u.end()
	return cdist.Dist_topology_num_tasks(u.topology(t))
}

// NumDevicesPerTask returns the number of devices of each task; 0 for a nil or closed topology.
func (t *Topology) NumDevicesPerTask() int {
	var u uses
	defer u.end()
	return cdist.Dist_topology_num_devices_per_task(u.topology(t))
}

// NumMissingDevices returns the number of positions without a device; 0 for a nil or closed topology.
func (t *Topology) NumMissingDevices() int {
	var u uses
	defer u.end()
	return int(cdist.Dist_topology_num_missing_devices(u.topology(t)))
}

// list returns a list of the topology.
func (t *Topology) list(read func(numbers cdist.Numbers, native int64)) []int {
	var u uses
	defer u.end()
	native := u.topology(t)
	numbers, _ := numbersOf(func(n cdist.Numbers) error {
		read(n, native)
		return nil
	})
	return numbers
}

// MeshShape returns the size of the mesh in each direction. This and the following lists are empty for a nil
// or closed topology.
func (t *Topology) MeshShape() []int {
	return t.list(func(n cdist.Numbers, native int64) { n.Topology_mesh_shape(native) })
}

// DeviceCoordinates returns the position of each device, as it was given: [task][device].
func (t *Topology) DeviceCoordinates() [][][]int {
	all := t.list(func(n cdist.Numbers, native int64) { n.Topology_device_coordinates(native) })
	return nested(all, t.NumTasks(), t.NumDevicesPerTask(), t.MeshRank())
}

// MissingDevices returns the positions without a device, in row-major order.
func (t *Topology) MissingDevices() [][]int {
	all := t.list(func(n cdist.Numbers, native int64) { n.Topology_missing_devices(native) })
	return nested(all, 1, t.NumMissingDevices(), t.MeshRank())[0]
}

// at prepares a query about a position.
func (u *uses) at(t *Topology, coordinates []int) (native int64, position []int32) {
	native = u.topology(t)
	if t != nil && coordinates != nil && len(coordinates) != t.MeshRank() {
		u.fail(newError(ErrInvalidArgument, "%d coordinates in a mesh of %d dimensions", len(coordinates), t.MeshRank()))
	}
	return native, u.int32s("coordinates", coordinates)
}

func (t *Topology) numberAt(coordinates []int, ask func(native int64, position []int32, out *int32) error) (int, error) {
	var u uses
	defer u.end()
	native, position := u.at(t, coordinates)
	if u.err != nil {
		return 0, u.err
	}
	var out int32
	err := ask(native, position, &out)
	return int(out), fromNative(err)
}

// TaskAt returns the task of the device at a position, or -1 if the device is missing.
func (t *Topology) TaskAt(coordinates []int) (int, error) {
	return t.numberAt(coordinates, cdist.Dist_topology_task_at)
}

// DeviceAt returns the index, within its task, of the device at a position, or -1 if the device is missing.
func (t *Topology) DeviceAt(coordinates []int) (int, error) {
	return t.numberAt(coordinates, cdist.Dist_topology_device_at)
}

// CPUAt returns the system's number of the CPU at a position of a topology made by [NewHostTopology], or -1
// if it is missing.
func (t *Topology) CPUAt(coordinates []int) (int, error) {
	return t.numberAt(coordinates, cdist.Dist_topology_cpu_at)
}

func (t *Topology) nameAt(coordinates []int, job string,
	ask func(native int64, position []int32, job string, room []byte, size int64) error) (string, error) {
	var u uses
	defer u.end()
	native, position := u.at(t, coordinates)
	if u.err != nil {
		return "", u.err
	}
	return nameIn(job, func(room []byte) error { return ask(native, position, job, room, int64(len(room))) })
}

// DeviceNameAt returns the name of the device at a position: "/job:worker/task:0/device:TPU:1", or
// "/task:0/device:TPU:1" if job is "".
func (t *Topology) DeviceNameAt(coordinates []int, job string) (string, error) {
	return t.nameAt(coordinates, job, cdist.Dist_topology_device_name_at)
}

// HostNameAt returns the name of the host of the device at a position: "/job:worker/task:0/device:CPU:0".
func (t *Topology) HostNameAt(coordinates []int, job string) (string, error) {
	return t.nameAt(coordinates, job, cdist.Dist_topology_host_name_at)
}

// Explain returns a description of the topology, as lines of the form "subject: words" for people to read.
// For the topology of a host, it includes how the host was detected.
func (t *Topology) Explain() (string, error) {
	var u uses
	defer u.end()
	native := u.topology(t)
	if u.err != nil {
		return "", u.err
	}
	return written(func(text cdist.Text) error { return text.Explain_topology(native) })
}
