// SPDX-License-Identifier: Apache-2.0

package dist

import "libdist.example/dist/internal/cdist"

// together calls something of a strategy and a variable.
func (s *Strategy) together(v *Variable, call func(strategy, variable int64) error) error {
	var u uses
	defer u.end()
	strategy, variable := u.busy(s), u.variable(v)
	if u.err != nil {
		return u.err
	}
	return s.reducing(func() error { return call(strategy, variable) })
}

// VariableDevice is the device that a copy of a variable is on, as ParameterDevice names it.
func (s *Strategy) VariableDevice(v *Variable, index int) (name string, err error) {
	err = s.together(v, func(strategy, variable int64) error {
		if err := checkInt32("index", index); err != nil {
			return err
		}
		return cdist.Dist_variable_device(strategy, variable, index, &name)
	})
	return name, err
}

// VariableCreatedInScope says whether this strategy made a variable: v is a variable's value, or one of its copies.
func (s *Strategy) VariableCreatedInScope(v *Value) (created bool, err error) {
	var out int32
	_, err = s.create([]*Value{v}, func(strategy int64, items []int64, _ *int64) error {
		return cdist.Dist_variable_created_in_scope(strategy, items[0], &out)
	})
	return out != 0, err
}

// VariableRead is the variable's value as the cross-replica context sees it, as a new tensor: of a SyncOnReadVariable
// the aggregate of all copies, of others copy 0.
func (s *Strategy) VariableRead(v *Variable) (*Value, error) {
	var out int64
	err := s.together(v, func(strategy, variable int64) error {
		return cdist.Dist_variable_read(strategy, variable, &out)
	})
	return adopt(out, err)
}

// VariableAssign assigns to every copy: a tensor to all, a per-replica or mirrored value to each its own.
func (s *Strategy) VariableAssign(v *Variable, how AssignHow, value *Value) error {
	return s.change(v, int(how), value, cdist.Dist_variable_assign)
}

// VariableScatter changes rows of every copy: indexed slices for all, or per-replica ones.
func (s *Strategy) VariableScatter(v *Variable, how ScatterHow, slices *Value) error {
	return s.change(v, int(how), slices, cdist.Dist_variable_scatter)
}

func (s *Strategy) change(v *Variable, how int, value *Value, call func(int64, int64, int, int64) error) error {
	var u uses
	defer u.end()
	strategy, variable, handle := u.busy(s), u.variable(v), u.value(value)
	if u.err != nil {
		return u.err
	}
	return s.reducing(func() error { return call(strategy, variable, int32Of(how), handle) })
}

// Drift is where the copies of a variable are no longer equal.
type Drift struct {
	NumCopies       int   // that were compared; 0: the variable is synchronized on reading
	Replica         int   // whose copy differs from most others'; -1: all are equal
	ExpectedReplica int   // the first whose copy has what most have; -1: all are equal
	Element         int64 // the first that differs, counted row-major; -1: all are equal
}

// VariableCheckDrift says whether the copies of a variable are still equal, to the bit, those of all workers: ErrDataLoss,
// and where. All workers call it.
func (s *Strategy) VariableCheckDrift(v *Variable) (Drift, error) {
	out := cdist.NewDist_drift()
	defer cdist.DeleteDist_drift(out)
	err := s.together(v, func(strategy, variable int64) error {
		return cdist.Dist_variable_check_drift(strategy, variable, out)
	})
	return Drift{out.GetNum_copies(), out.GetReplica(), out.GetExpected_replica(), out.GetElement()}, err
}

// sharedError is the error of a call whose function another replica may have given: the program's own, or libdist's.
func (r *Replica) sharedError(err error) error {
	return r.told(r.given().own(err))
}

// Read is this replica's copy of a variable as a new tensor; Component gives a view of it.
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

// Assign assigns inside replicas, by the variable's aggregation. Collective, unless each replica keeps to its own copy.
func (r *Replica) Assign(v *Variable, how AssignHow, value Array, options ...Option) error {
	var c collective
	defer c.end()
	replica, variable, numbers := c.begin(r, options), c.variable(v), c.tensor(value)
	if c.err != nil {
		return c.err
	}
	return c.finish(cdist.Dist_replica_assign(replica, variable, int32Of(int(how)), numbers, c.native))
}

// AssignValue is Assign of a value, whose identity counts: where all replicas give the same one it is one number for
// all of them, which AggregationMean and AggregationOnlyFirstReplica assign, and of which AggregationSum is an error.
func (r *Replica) AssignValue(v *Variable, how AssignHow, value *Value, options ...Option) error {
	return r.change(v, int(how), value, options, cdist.Dist_replica_assign_value)
}

// Scatter changes rows inside replicas, by the variable's aggregation: slices are indexed slices.
func (r *Replica) Scatter(v *Variable, how ScatterHow, slices *Value, options ...Option) error {
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
