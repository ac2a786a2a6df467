// SPDX-License-Identifier: Apache-2.0

package dist

import "libdist.example/dist/internal/cdist"

// UpdateFunc changes one copy of a variable. args is a list that holds this copy's components; it ends with the call, and
// so does the view of the copy. Several copies may be changed at the same time.
type UpdateFunc = func(copy RawTensor, args *Value) error

// UpdatePlace is what one call of an UpdateValuesFunc is for.
type UpdatePlace struct {
	Replica int       // whose copy it is; -1: no replica's in particular, as central storage's
	Device  string    // its name, as ParameterDevice; "" for the default strategy
	Copy    RawTensor // to be changed; without a DType in UpdateNonSlot
}

// UpdateValuesFunc changes one copy of a variable, with named arguments and a result. It is called in the cross-replica
// context, in the strategy's scope, and may reduce and run there. args and kwargs end with the call; the result is taken
// over.
type UpdateValuesFunc = func(place UpdatePlace, args, kwargs *Value) (*Value, error)

// UpdateOptions are the rare choices of UpdateValues and its like.
type UpdateOptions struct {
	Kwargs *Value // a dictionary of named arguments
	// Ungrouped: each leaf of the result becomes a tuple of what the calls gave, one where all gave one object.
	Ungrouped bool
}

type updateCall struct {
	failures
	fn UpdateFunc
}

type updateValuesCall struct {
	*failures
	fn UpdateValuesFunc
}

// Update is called by libdist for Strategy.Update.
func (callbacks) Update(token, copy, args int64) int {
	c := registered[*updateCall](token)
	return c.lend(func(owner *object) error {
		given := lend(args)
		defer given.Close()
		return c.fn(tensorAt(copy, 0, owner), given)
	})
}

// Update_values is called by libdist for Strategy.UpdateValues and its like.
func (callbacks) Update_values(token int64, replica int, device string, copy, args, kwargs int64) int64 {
	c := registered[*updateValuesCall](token)
	return c.makes(func() (*Value, error) {
		place := UpdatePlace{Replica: replica, Device: device}
		owner := &object{}
		defer owner.close()
		if copy != 0 {
			place.Copy = tensorAt(copy, 0, owner)
		}
		given, named := lend(args), lend(kwargs)
		defer given.Close()
		defer named.Close()
		return c.fn(place, given, named)
	})
}

// Update calls fn on every copy of a variable, with that replica's components of args (a list or tuple, or nil), some at
// the same time.
func (s *Strategy) Update(v *Variable, fn UpdateFunc, args *Value) error {
	var u uses
	defer u.end()
	strategy, variable, handle := u.busy(s), u.variable(v), u.value(args)
	if u.err != nil {
		return u.err
	}
	c := &updateCall{fn: fn}
	token := registerIf(fn != nil, c)
	defer forget(token)
	return c.own(cdist.Dist_update(strategy, variable, token, handle))
}

// UpdateValues is Update with named arguments and results: one call after another, on the caller's thread. The results
// merge, mirrored where they differ; nil where no call gave one. options may be nil.
func (s *Strategy) UpdateValues(v *Variable, fn UpdateValuesFunc, args *Value, options *UpdateOptions) (*Value, error) {
	var u uses
	defer u.end()
	strategy, variable := u.busy(s), u.variable(v)
	return u.update(&failures{}, fn, args, options,
		func(token, args, kwargs int64, o cdist.Dist_update_options, out *int64) error {
			return cdist.Dist_update_values(strategy, variable, token, args, kwargs, o, out)
		})
}

// UpdateNonSlot is UpdateValues of what is no variable: once for each device that variables are on.
func (s *Strategy) UpdateNonSlot(fn UpdateValuesFunc, args *Value, options *UpdateOptions) (*Value, error) {
	var u uses
	defer u.end()
	strategy := u.busy(s)
	return u.update(&failures{}, fn, args, options,
		func(token, args, kwargs int64, o cdist.Dist_update_options, out *int64) error {
			return cdist.Dist_update_non_slot(strategy, token, args, kwargs, o, out)
		})
}

// Update is Strategy.UpdateValues from inside replicas: all of them meet, what they give as arguments is merged, and
// replica 0's function is used. The result is this replica's component.
func (r *Replica) Update(v *Variable, fn UpdateValuesFunc, args *Value, options *UpdateOptions) (*Value, error) {
	var u uses
	defer u.end()
	replica, variable := u.replica(r), u.variable(v)
	if u.err != nil {
		return nil, u.err
	}
	return u.update(r.given(), fn, args, options,
		func(token, args, kwargs int64, o cdist.Dist_update_options, out *int64) error {
			return cdist.Dist_replica_update(replica, variable, token, args, kwargs, o, out)
		})
}

func (u *uses) update(shared *failures, fn UpdateValuesFunc, args *Value, options *UpdateOptions,
	call func(token, args, kwargs int64, options cdist.Dist_update_options, out *int64) error) (*Value, error) {
	if options == nil {
		options = &UpdateOptions{}
	}
	handle, kwargs := u.value(args), u.value(options.Kwargs)
	if u.err != nil {
		return nil, u.err
	}
	native := cdist.NewDist_update_options()
	defer cdist.DeleteDist_update_options(native)
	native.SetUngrouped(intOf(options.Ungrouped))
	c := &updateValuesCall{shared, fn}
	token := registerIf(fn != nil, c)
	defer forget(token)
	var out int64
	err := c.own(call(token, handle, kwargs, native, &out))
	return adopt(out, err)
}
