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

// Tag names a collective in error reports. It must be the same on all members.
func Tag(tag string) Option { return Option{tag: tag} }

// Timeout limits how long one collective waits for a peer. [NoTimeout] means no limit.
func Timeout(timeout time.Duration) Option { return Option{timeout: timeout} }

// Async makes the collective return at once and stores the work in progress in *work; see [Work].
func Async(work **Work) Option {
	return Option{set: func(c *choices) { c.work, c.later = work, true }}
}

// Plan makes the collective a plan and stores it in *work. [Work.Start] starts the plan, any number of times.
func Plan(work **Work) Option {
	return Option{set: func(c *choices) { c.work, c.later, c.planned = work, true, true }}
}

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
				return "", 0, false // C rejects it
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
	if c.choices.later && c.choices.work == nil {
		c.fail(newError(ErrInvalidArgument, "the argument of Async or Plan is nil: pass a pointer to a *Work"))
		return 0
	}
	c.choices.set(native, &c.uses)
	native.SetPlanned(intOf(c.choices.planned))
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
	err = byContext(c.choices.ctx, c.replica.told(c.given.own(err)))
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
	c.cancel.end()
	c.uses.end()
}
