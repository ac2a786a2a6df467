// SPDX-License-Identifier: Apache-2.0

package dist

import "libdist.example/dist/internal/cdist"

// PSVariableOptions are the rare choices of Coordinator.CreateVariable.
type PSVariableOptions struct {
	MaxStaleness int    // how many of a worker's closures a cached read may be old; 0: nothing is cached
	Partitions   []int  // into how many parts each dimension is divided, as PartitionFunc; nil: the partitioner
	ColocateWith string // the parts lie with those of this variable, as an optimizer's state does; "": in turn
}

// CreateVariable makes a variable on the parameter servers, with the elements of `initial`. Variables, and the parts of divided
// ones, go to the servers in turn, in the order in which they are created. It waits until the servers are there, at most for
// Timeout: ErrDeadlineExceeded names one that is not. What the partitioner fails with comes back as it was. options may be
// nil.
func (c *Coordinator) CreateVariable(name string, initial Array, options *PSVariableOptions) error {
	var u uses
	defer u.end()
	native := cdist.NewDist_ps_variable_options()
	defer cdist.DeleteDist_ps_variable_options(native)
	if options != nil {
		native.SetMax_staleness(u.int32("PSVariableOptions.MaxStaleness", options.MaxStaleness))
		if options.Partitions != nil {
			native.Set_partitions(int64sOf(options.Partitions), int64(len(options.Partitions)))
		}
		if options.ColocateWith != "" {
			native.SetColocate_with(u.text(options.ColocateWith))
		}
	}
	coordinator, name, numbers := u.coordinator(c), u.text(name), u.tensor(initial)
	if u.err != nil {
		return u.err
	}
	err := cdist.Dist_coordinator_create_variable(coordinator, name, numbers, native)
	if c != nil && err != nil {
		if p := c.shared.partitioning(); p != nil {
			return p.own(err)
		}
	}
	return fromNative(err)
}

// Variables are the names of the variables, in the order of their creation; empty for nil and for a closed coordinator.
func (c *Coordinator) Variables() (names []string) {
	_ = c.with(func(native int64) error {
		names = make([]string, cdist.Dist_coordinator_num_variables(native))
		for i := range names {
			names[i] = cdist.Dist_coordinator_variable_name(native, int64(i))
		}
		return nil
	})
	return names
}

// VariableSpec is a variable's dtype and shape, without its data.
func (c *Coordinator) VariableSpec(name string) (RawTensor, error) {
	spec, _, err := c.spec(name)
	return spec, err
}

func (c *Coordinator) spec(name string) (spec RawTensor, numParts int64, err error) {
	if err := checkText(name); err != nil {
		return spec, 0, err
	}
	err = c.with(func(native int64) error {
		numbers := make([]int64, mostNumbers)
		if err := cdist.Dist_coordinator_variable_spec(native, name, numbers, &numParts); err != nil {
			return err
		}
		spec = unpack(numbers, nil)
		return nil
	})
	return spec, numParts, err
}

// VariablePart is where some rows of a variable lie.
type VariablePart struct {
	Device string // "/job:ps/replica:0/task:1/device:CPU:0"
	Begin  int    // the first of its rows
	Rows   int
}

// VariableParts are the parts of a variable, in the order of their rows; a variable that is not divided has one.
func (c *Coordinator) VariableParts(name string) ([]VariablePart, error) {
	_, n, err := c.spec(name)
	if err != nil {
		return nil, err
	}
	parts := make([]VariablePart, n)
	for i := range parts {
		if err := c.with(func(native int64) error {
			var device string // of its own: what C gets a pointer into has no other pointers
			var begin, rows int64
			err := cdist.Dist_coordinator_variable_part(native, name, int64(i), &device, &begin, &rows)
			parts[i] = VariablePart{Device: device, Begin: int(begin), Rows: int(rows)}
			return err
		}); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// Read gives variables, each a value to close. Those of one parameter server are of one moment.
func (c *Coordinator) Read(names ...string) ([]*Value, error) {
	return readVariables(c, names, cdist.Dist_coordinator_read)
}

// ReadRows gives rows of a variable, as an embedding is looked up: row k of the result is row indices[k], int32 or int64.
func (c *Coordinator) ReadRows(name string, indices *Value) (*Value, error) {
	return readRows(c, name, indices, cdist.Dist_coordinator_read_rows)
}

// Assign changes a variable, at once.
func (c *Coordinator) Assign(name string, how AssignHow, value *Value) error {
	return changeVariable(c, name, int(how), value, cdist.Dist_coordinator_assign)
}

// Scatter changes rows of a variable by indexed slices, row by row, at once.
func (c *Coordinator) Scatter(name string, how ScatterHow, slices *Value) error {
	return changeVariable(c, name, int(how), slices, cdist.Dist_coordinator_scatter)
}

// Update changes variables that lie alike by a function that the parameter servers have registered, Server.RegisterUpdate, at
// once. arguments may be nil. What the function fails with is the error, and then nothing has changed.
func (c *Coordinator) Update(function string, names []string, arguments *Value) error {
	return updateVariables(c, function, names, arguments, cdist.Dist_coordinator_update)
}

// Save writes a checkpoint of all variables, in which a divided variable is one tensor, and waits until it is on the disk.
// Closures go on meanwhile: the file has, for each parameter server, the variables of one moment, and which closures they
// have in them.
func (c *Coordinator) Save(path string) error {
	if err := checkText(path); err != nil {
		return err
	}
	return c.with(func(native int64) error { return cdist.Dist_coordinator_save(native, path) })
}

// Restore gives all variables the values that a checkpoint has for them, before the first closure. Closures are numbered on
// from the mark that was saved: all below it had ended. A program that schedules its closures again from that one on, in the
// same order, has each of them have its effects once. The mark of other programs' files is 0.
func (c *Coordinator) Restore(path string) (mark int64, err error) {
	if err := checkText(path); err != nil {
		return 0, err
	}
	err = c.with(func(native int64) error { return cdist.Dist_coordinator_restore(native, path, &mark) })
	return mark, err
}
