// SPDX-License-Identifier: Apache-2.0

package dist

import "libdist.example/dist/internal/cdist"

// CreateVariable creates a variable on the parameter servers, with the elements of initial. Variables, and
// the parts of divided variables, are placed on the servers in turn, in the order of their creation.
// CreateVariable waits up to the coordinator's Timeout until all servers are available; it then fails with
// [ErrDeadlineExceeded], and the error names a server that is not available. If the partitioner fails,
// CreateVariable returns its error unchanged. options may be nil.
func (c *Coordinator) CreateVariable(name string, initial Array, options *PSVariableOptions) error {
	var u uses
	defer u.end()
	native := options.native(&u)
	defer cdist.DeleteDist_ps_variable_options(native)
	coordinator, name, numbers := u.coordinator(c), u.text(name), u.tensor(initial)
	if u.err != nil {
		return u.err
	}
	err := cdist.Dist_coordinator_create_variable(coordinator, name, numbers, native)
	if c != nil && c.shared != nil && err != nil {
		return c.shared.functions().own(err)
	}
	return fromNative(err)
}

// Variables returns the names of the variables, in the order of their creation. It returns an empty slice for
// a nil or closed coordinator.
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

// VariableSpec returns the dtype and shape of a variable, without its data.
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

// VariablePart describes where some rows of a variable are stored.
type VariablePart struct {
	Device string // device of the server: "/job:ps/replica:0/task:1/device:CPU:0"
	Begin  int    // first row
	Rows   int    // number of rows
}

// VariableParts returns the parts of a variable, in the order of their rows. A variable that is not divided
// has one part.
func (c *Coordinator) VariableParts(name string) ([]VariablePart, error) {
	_, n, err := c.spec(name)
	if err != nil {
		return nil, err
	}
	parts := make([]VariablePart, n)
	for i := range parts {
		if err := c.with(func(native int64) error {
			var device string // a variable of its own: memory that C may write to must contain no other pointers
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

// Read reads variables. The values of variables on the same parameter server are from the same moment. The
// caller must close the values.
func (c *Coordinator) Read(names ...string) ([]*Value, error) {
	return readVariables(c, names, cdist.Dist_coordinator_read)
}

// ReadRows reads rows of a variable, for example of an embedding: row k of the result is row indices[k]. The
// indices are of type int32 or int64.
func (c *Coordinator) ReadRows(name string, indices *Value) (*Value, error) {
	return readRows(c, name, indices, cdist.Dist_coordinator_read_rows)
}

// Assign changes a variable immediately.
func (c *Coordinator) Assign(name string, how Assign, value *Value) error {
	return changeVariable(c, name, int(how), value, cdist.Dist_coordinator_assign)
}

// Scatter changes rows of a variable immediately, by indexed slices, row by row.
func (c *Coordinator) Scatter(name string, how Scatter, slices *Value) error {
	return changeVariable(c, name, int(how), slices, cdist.Dist_coordinator_scatter)
}

// Update changes variables immediately with a function that the parameter servers have registered; see
// [Server.RegisterUpdate]. The variables must have the same parts on the same servers. arguments may be nil.
// If the function fails on a server, nothing changes there, and Update returns the error; other servers may
// have changed their parts.
func (c *Coordinator) Update(function string, names []string, arguments *Value) error {
	return updateVariables(c, function, names, arguments, cdist.Dist_coordinator_update)
}

// Save writes a checkpoint of all variables and waits until it is on disk. A divided variable is one tensor
// in the file. Closures continue meanwhile: for each parameter server, the file has the variables of one
// moment, and records the closures whose effects they include.
func (c *Coordinator) Save(path string) error {
	if err := checkText(path); err != nil {
		return err
	}
	return c.with(func(native int64) error { return cdist.Dist_coordinator_save(native, path) })
}

// Restore loads all variables from a checkpoint. Call it before the first closure is scheduled. The returned
// mark is the saved position: all closures with lower numbers had finished, and new closures are numbered
// from it. If the program schedules its closures again from that number, in the same order, the effects of
// each closure are applied once. The mark is 0 for files of other programs.
func (c *Coordinator) Restore(path string) (mark int64, err error) {
	if err := checkText(path); err != nil {
		return 0, err
	}
	err = c.with(func(native int64) error { return cdist.Dist_coordinator_restore(native, path, &mark) })
	return mark, err
}
