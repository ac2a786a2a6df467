// SPDX-License-Identifier: Apache-2.0

package dist

import "libdist.example/dist/internal/cdist"

// handles returns the handles of the variable and its strategy, and the strategy itself.
func (v *Variable) handles(u *uses) (strategy, variable int64, s *Strategy) {
	if v == nil {
		u.fail(newError(ErrInvalidArgument, "the variable is nil: Strategy.NewVariable creates one"))
		return 0, 0, nil
	}
	s = v.strategy
	if s == nil {
		s = CurrentStrategy()
	}
	return u.busy(s), u.variable(v), s
}

// together calls a function with the handles of the strategy and the variable.
func (v *Variable) together(call func(strategy, variable int64) error) error {
	var u uses
	defer u.end()
	strategy, variable, s := v.handles(&u)
	if u.err != nil {
		return u.err
	}
	return s.reducing(func() error { return call(strategy, variable) })
}

// Device returns the device of a copy, in the form of [Strategy.ParameterDevice].
func (v *Variable) Device(index int) (name string, err error) {
	err = v.together(func(strategy, variable int64) error {
		if err := checkInt32("index", index); err != nil {
			return err
		}
		return cdist.Dist_variable_device(strategy, variable, index, &name)
	})
	return name, err
}

// CreatedInScope reports whether this strategy created a variable. v is a variable's value, or one of
// its copies.
func (s *Strategy) CreatedInScope(v *Value) (created bool, err error) {
	var out int32
	_, err = s.create([]*Value{v}, func(strategy int64, items []int64, _ *int64) error {
		return cdist.Dist_variable_created_in_scope(strategy, items[0], &out)
	})
	return out != 0, err
}

// Read returns the variable's value in cross-replica context, as a new tensor: the aggregate of all
// copies for a "SyncOnReadVariable", and copy 0 for other classes. The caller must close the value.
func (v *Variable) Read() (*Value, error) {
	var out int64
	err := v.together(func(strategy, variable int64) error {
		return cdist.Dist_variable_read(strategy, variable, &out)
	})
	return adopt(out, err)
}

// Assign assigns to every copy, in cross-replica context. A tensor is assigned to all copies; a per-replica or mirrored value
// assigns each component to the copy of its replica.
func (v *Variable) Assign(how Assign, value *Value) error {
	return v.change(int(how), value, cdist.Dist_variable_assign)
}

// Scatter changes rows of every copy, in cross-replica context. Indexed slices apply to all copies; the components of a
// per-replica value apply to the copies of their replicas.
func (v *Variable) Scatter(how Scatter, slices *Value) error {
	return v.change(int(how), slices, cdist.Dist_variable_scatter)
}

func (v *Variable) change(how int, value *Value, call func(int64, int64, int, int64) error) error {
	var u uses
	defer u.end()
	strategy, variable, s := v.handles(&u)
	handle := u.value(value)
	if u.err != nil {
		return u.err
	}
	return s.reducing(func() error { return call(strategy, variable, int32Of(how), handle) })
}

// A Drift describes where the copies of a variable differ.
type Drift struct {
	NumCopies       int   // number of copies compared; 0 = the variable is synchronized on reading
	Replica         int   // replica whose copy differs from most others; -1 = all are equal
	ExpectedReplica int   // first replica whose copy has the value of most; -1 = all are equal
	Element         int64 // first element that differs, in row-major order; -1 = all are equal
}

// CheckDrift checks that the copies of the variable, of all workers, are equal to the bit. If they
// differ, it fails with [ErrDataLoss], and the result describes where. All workers must call it.
func (v *Variable) CheckDrift() (Drift, error) {
	out := cdist.NewDist_drift()
	defer cdist.DeleteDist_drift(out)
	err := v.together(func(strategy, variable int64) error {
		return cdist.Dist_variable_check_drift(strategy, variable, out)
	})
	return Drift{out.GetNum_copies(), out.GetReplica(), out.GetExpected_replica(), out.GetElement()}, err
}

// sharedError returns the error of a call whose callback another replica may have passed: the program's own
// error, or libdist's.
func (r *Replica) sharedError(err error) error {
	return r.told(r.given().own(err))
}

// Read returns this replica's copy of a variable as a new tensor, which the caller must close. [Component]
// returns a view instead.
func (r *Replica) Read(v *Variable) (*Value, error) {
	var u uses
	defer u.end()
	replica, variable := u.replica(r), u.variable(v)
	if u.err != nil {
		return nil, u.err
	}
	var out int64
	err := cdist.Dist_replica_read(replica, variable, &out)
	return adopt(out, err)
}

// Assign assigns to a variable inside replicas, according to its aggregation. It is a collective, unless each
// replica writes only its own copy.
func (r *Replica) Assign(v *Variable, how Assign, value Array, options ...Option) error {
	var c collective
	defer c.end()
	replica, variable, numbers := c.begin(r, options), c.variable(v), c.tensor(value)
	if c.err != nil {
		return c.err
	}
	return c.finish(cdist.Dist_replica_assign(replica, variable, int32Of(int(how)), numbers, c.native))
}

// AssignValue assigns a value to a variable inside replicas, like [Replica.Assign]. As in TensorFlow, the
// identity of the value matters: if all replicas pass the same value, it counts as one number for all of
// them. [AggregationMean] and [AggregationOnlyFirstReplica] then assign that value, and [AggregationSum]
// fails.
func (r *Replica) AssignValue(v *Variable, how Assign, value *Value, options ...Option) error {
	return r.change(v, int(how), value, options, cdist.Dist_replica_assign_value)
}

// Scatter changes rows of a variable inside replicas, by indexed slices and according to the variable's
// aggregation.
func (r *Replica) Scatter(v *Variable, how Scatter, slices *Value, options ...Option) error {
	return r.change(v, int(how), slices, options, cdist.Dist_replica_scatter)
}

func (r *Replica) change(v *Variable, how int, value *Value, options []Option,
	call func(int64, int64, int, int64, cdist.Dist_collective_options) error) error {
	var c collective
	defer c.end()
	replica, variable, handle := c.begin(r, options), c.variable(v), c.value(value)
	if c.err != nil {
		return c.err
	}
	return c.finish(call(replica, variable, int32Of(how), handle, c.native))
}
