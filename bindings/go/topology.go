// SPDX-License-Identifier: Apache-2.0

package dist

import "libdist.example/dist/internal/cdist"

// Topology says where devices are: positions (x, y, z, core) of a mesh, each device in a task. Coordinates are slices of
// four; -1 is the last one in its direction, -2 the one before it.
type Topology struct {
	object
	of *DeviceAssignment // whose it is, where it is borrowed
}

func ownTopology(native int64, err error) (*Topology, error) {
	if err != nil {
		return nil, fromNative(err)
	}
	t := &Topology{}
	t.open(native, cdist.Dist_topology_destroy, nil)
	return t, nil
}

// NewTopology makes a topology by hand: deviceCoordinates[task][device] is where that device is. All tasks have equally
// many. Positions may be without a device; of two devices at one position the later one is there.
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

// TopologyFromSerialized makes a topology of what Serialized gave, here or in TensorFlow: a TopologyProto.
func TopologyFromSerialized(serialized []byte) (*Topology, error) {
	numbers := make([]int64, len(serialized))
	for i, b := range serialized {
		numbers[i] = int64(b)
	}
	var out int64
	err := cdist.Topology_from_serialized(numbers, int64(len(numbers)), &out)
	return ownTopology(out, err)
}

// TopologyFromHost makes a topology of the CPUs that this process may use. x: package; y: NUMA domain in it; z: core
// in that; core: hardware thread of the core.
func TopologyFromHost() (*Topology, error) {
	var out int64
	err := cdist.Dist_topology_from_host(nil, &out)
	return ownTopology(out, err)
}

// Close gives the topology up; assignments made with it go on. Closing twice, and nil, are fine.
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

// MeshRank is the number of dimensions of the mesh, 4; 0 for nil and for a closed one.
func (t *Topology) MeshRank() int {
	var u uses
	defer u.end()
	return cdist.Dist_topology_mesh_rank(u.topology(t))
}

// NumTasks is the number of tasks; 0 for nil and for a closed one.
func (t *Topology) NumTasks() int {
	var u uses
	defer u.end()
	return cdist.Dist_topology_num_tasks(u.topology(t))
}

// NumDevicesPerTask is the number of devices of each task; 0 for nil and for a closed one.
func (t *Topology) NumDevicesPerTask() int {
	var u uses
	defer u.end()
	return cdist.Dist_topology_num_devices_per_task(u.topology(t))
}

// NumMissingDevices is the number of positions without a device; 0 for nil and for a closed one.
func (t *Topology) NumMissingDevices() int {
	var u uses
	defer u.end()
	return int(cdist.Dist_topology_num_missing_devices(u.topology(t)))
}

// list is what one of the lists of C's has.
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

// MeshShape is the size of the mesh in each direction; empty for nil and for a closed one, here as below.
func (t *Topology) MeshShape() []int {
	return t.list(func(n cdist.Numbers, native int64) { n.Topology_mesh_shape(native) })
}

// DeviceCoordinates are where each device is, as it was given: [task][device].
func (t *Topology) DeviceCoordinates() [][][]int {
	all := t.list(func(n cdist.Numbers, native int64) { n.Topology_device_coordinates(native) })
	return nested(all, t.NumTasks(), t.NumDevicesPerTask(), t.MeshRank())
}

// MissingDevices are the positions without a device, row-major.
func (t *Topology) MissingDevices() [][]int {
	all := t.list(func(n cdist.Numbers, native int64) { n.Topology_missing_devices(native) })
	return nested(all, 1, t.NumMissingDevices(), t.MeshRank())[0]
}

// Serialized is the topology as a TopologyProto, in TensorFlow's bytes; one that was made of bytes has those.
func (t *Topology) Serialized() []byte {
	numbers := t.list(func(n cdist.Numbers, native int64) { n.Topology_serialized(native) })
	serialized := make([]byte, len(numbers))
	for i, n := range numbers {
		serialized[i] = byte(n)
	}
	return serialized
}

// at readies a question about a position.
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

// TaskAt is the task that the device at a position belongs to; -1 where it is missing.
func (t *Topology) TaskAt(coordinates []int) (int, error) {
	return t.numberAt(coordinates, cdist.Dist_topology_task_at)
}

// DeviceAt is which device of its task is at a position; -1 where it is missing.
func (t *Topology) DeviceAt(coordinates []int) (int, error) {
	return t.numberAt(coordinates, cdist.Dist_topology_device_at)
}

// CPUAt is which CPU, by the system's number, is the device at a position of TopologyFromHost; -1 where it is missing.
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

// DeviceNameAt is the name of the device at a position: "/job:worker/task:0/device:TPU:1"; with "" as job
// "/task:0/device:TPU:1".
func (t *Topology) DeviceNameAt(coordinates []int, job string) (string, error) {
	return t.nameAt(coordinates, job, cdist.Dist_topology_device_name_at)
}

// HostNameAt is the name of the host of the device at a position: "/job:worker/task:0/device:CPU:0".
func (t *Topology) HostNameAt(coordinates []int, job string) (string, error) {
	return t.nameAt(coordinates, job, cdist.Dist_topology_host_name_at)
}

// Explain says what the topology is, and of a host's how that was found: lines of "subject: words", for people.
func (t *Topology) Explain() (string, error) {
	var u uses
	defer u.end()
	native := u.topology(t)
	if u.err != nil {
		return "", u.err
	}
	return written(func(text cdist.Text) error { return text.Explain_topology(native) })
}
