// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"context"
	"time"

	"libdist.example/dist/internal/cdist"
)

// An Option changes one collective. Functions such as [Tag], [Timeout], [InGroup] and [Async] return options.
type Option struct {
	set func(*choices) // nil: tag and timeout are all there is
	tag string
	// A struct instead of closures, so that the two common options need no allocation.
	timeout time.Duration
}

type choices struct {
	tag           string
	timeout       time.Duration
	rare          bool
	numerics      Numerics
	group         *Group
	weights       []float64
	contributions int
	reduce        ReduceOperator
	elementBytes  int
	splits        []int
	axis          int
	work          **Work
	planned       bool
	bytesPerPack  int64
	ctx           context.Context
}

// Tag names a collective in error reports. It must be the same on all members.
func Tag(tag string) Option { return Option{tag: tag} }

// Timeout limits how long one collective waits for a peer. [NoTimeout] means no limit.
func Timeout(timeout time.Duration) Option { return Option{timeout: timeout} }

// WithNumerics selects the order of additions in a sum, which determines its bits. Without it, or with
// [Ordered], the strategy's Options.Numerics applies.
func WithNumerics(numerics Numerics) Option {
	return Option{set: func(c *choices) { c.numerics = numerics }}
}

// InGroup runs the collective only among the members of a group. Roots and ranks are then ranks in the group.
func InGroup(group *Group) Option { return Option{set: func(c *choices) { c.group = group }} }

// Weights gives [Mean] one weight, at least 0, for each contribution. Either all members pass weights or
// none.
func Weights(weights ...float64) Option { return Option{set: func(c *choices) { c.weights = weights }} }

// Contributions is the number of lists of tensors that this replica adds to each sum.
func Contributions(n int) Option { return Option{set: func(c *choices) { c.contributions = n }} }

// ReduceOperator is a reduction operator of the program: acc[i] = op(acc[i], in[i]) for every element.
// libdist calls it on parts of tensors, from several threads at the same time. It must not call libdist, and
// its result must not depend on how a tensor is split. It cannot return an error; if it panics, the call that
// uses the operator fails with the panic as its error.
type ReduceOperator = func(acc, in RawTensor)

// ReduceWith sets the operator of [ReduceUser]. It must be the same on all members.
func ReduceWith(operator ReduceOperator) Option {
	return Option{set: func(c *choices) { c.reduce = operator }}
}

// ReduceElement sets how many bytes the operator of [ReduceUser] treats as one element, if these are several
// elements of the tensor. The number is a multiple of the tensor's element size and at most 4096.
// libdist never splits such an element. The size must be the same on all members.
func ReduceElement(bytes int) Option {
	return Option{set: func(c *choices) { c.elementBytes = bytes }}
}

// Splits sets the R sizes of the parts into which AllToAll splits its input along the axis. Without it, the
// parts are equal.
func Splits(sizes ...int) Option { return Option{set: func(c *choices) { c.splits = sizes }} }

// Axis selects the dimension along which tensors are split or joined. A negative axis counts from the end.
func Axis(axis int) Option { return Option{set: func(c *choices) { c.axis = axis }} }

// Async makes the collective return at once and stores the work in progress in *work; see [Work].
func Async(work **Work) Option { return Option{set: func(c *choices) { c.work = work }} }

// Plan makes the collective a plan and stores it in *work. [Work.Start] starts the plan, any number of times.
func Plan(work **Work) Option {
	return Option{set: func(c *choices) { c.work, c.planned = work, true }}
}

// BytesPerPack sets the approximate size of the packs into which a planned list is divided, in bytes.
func BytesPerPack(n int64) Option { return Option{set: func(c *choices) { c.bytesPerPack = n }} }

// Within cancels the collective on all members when ctx ends: with [ErrDeadlineExceeded] if ctx reached its
// deadline, and with [ErrCancelled] otherwise. This also cancels all other collectives of the same group that
// are in progress in this run.
func Within(ctx context.Context) Option { return Option{set: func(c *choices) { c.ctx = ctx }} }

func chosen(options []Option) (all choices) {
	for i := range options {
		o := &options[i]
		if o.set != nil {
			o.set(&all)
			all.rare = true
		}
		if o.tag != "" {
			all.tag = o.tag
		}
		if o.timeout != 0 {
			all.timeout = o.timeout
		}
	}
	return all
}

// common returns the tag and the timeout if the options contain nothing else. It does not allocate.
func common(options []Option) (tag string, timeout int64, quick bool) {
	for i := range options {
		o := &options[i]
		if o.set != nil {
			return "", 0, false
		}
		if o.tag != "" {
			if checkText(o.tag) != nil {
				return "", 0, false // where it is refused
			}
			tag = o.tag
		}
		if o.timeout != 0 {
			timeout = int64(o.timeout)
		}
	}
	return tag, timeout, true
}

// collective is one call of a collective: its options for C, and what they refer to.
type collective struct {
	uses
	replica *Replica
	choices choices
	native  cdist.Dist_collective_options // nil: none
	tokens  []int64
	user    operators
	cancel  *canceller
}

// begin prepares a collective of r. The caller must call end.
func (c *collective) begin(r *Replica, options []Option) (replica int64) {
	c.replica = r
	replica = c.uses.replica(r)
	if len(options) == 0 || c.err != nil {
		return replica
	}
	c.choices = chosen(options)
	native := cdist.NewDist_collective_options()
	c.native = native
	if c.choices.tag != "" {
		native.SetTag(c.text(c.choices.tag))
	}
	native.SetTimeout_ns(int64(c.choices.timeout))
	if !c.choices.rare {
		return replica
	}
	if n := len(c.choices.weights); n > 0 && n != max(1, c.choices.contributions) || c.choices.contributions < 0 {
		c.fail(newError(ErrInvalidArgument, "%d weights for %d contributions: give one for each",
			n, c.choices.contributions))
		return 0
	}
	native.SetNumerics(int32Of(int(c.choices.numerics)))
	native.SetGroup(c.group(c.choices.group))
	native.Set_weights(c.choices.weights, int64(len(c.choices.weights)))
	native.SetContributions(int64(c.choices.contributions))
	if c.choices.reduce != nil {
		c.user.operator = c.choices.reduce
		c.tokens = append(c.tokens, register(&c.user))
		native.Set_reduce(c.tokens[0])
	}
	c.user.elementBytes = int64(c.choices.elementBytes)
	native.SetReduce_element_bytes(int64(c.choices.elementBytes))
	if c.choices.splits != nil {
		splits := make([]int64, len(c.choices.splits))
		for i, size := range c.choices.splits {
			splits[i] = int64(size)
		}
		native.Set_splits(splits, int64(len(splits)))
	}
	native.SetAxis(c.int32("Axis", c.choices.axis))
	native.SetPlanned(intOf(c.choices.planned))
	native.SetBytes_per_pack(c.choices.bytesPerPack)
	if c.choices.work != nil {
		native.Begin_work()
	}
	cancel, err := cancelWith(c.choices.ctx)
	if err != nil {
		c.fail(err)
	}
	c.cancel = cancel
	native.SetCancel(cancel.handle())
	return replica
}

// finish returns the call's error and stores its work for the caller.
func (c *collective) finish(err error) error {
	err = byContext(c.choices.ctx, c.replica.told(c.user.own(err)))
	if err == nil && c.choices.work != nil && c.replica != nil {
		if native := c.native.Work(); native != 0 {
			*c.choices.work = newWork(native, c)
		}
	}
	return err
}

func (c *collective) end() {
	if c.native != nil {
		cdist.DeleteDist_collective_options(c.native)
	}
	for _, token := range c.tokens {
		forget(token)
	}
	c.cancel.end()
	c.uses.end()
}
