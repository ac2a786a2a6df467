// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"libdist.example/dist"
)

// apart is a worker of a cluster of that many, which nothing leads to.
func apart(t *testing.T, workers int) *dist.Strategy {
	t.Helper()
	options := workerOptions(t, workers, 0)
	options.Replicas, options.Transport, options.Reform = 1, dist.NoneTransport, dist.ReformAtNextRun
	return newStrategy(t, options)
}

func TestReformMisuse(t *testing.T) {
	for _, s := range []*dist.Strategy{newStrategy(t, dist.Options{Replicas: 2}), apart(t, 1)} {
		fails(t, s.Reform(background, nil), dist.ErrFailedPrecondition, "has only one worker")
		fails(t, s.Reform(background, nil), dist.ErrFailedPrecondition, "Strategy.Reform")
		is(t, "due", must[bool](t)(s.ReformDue()), false)
		q := must[dist.Properties](t)(s.Properties())
		is(t, "generation", []int{q.Generation, q.NumJoined, q.NumLeft}, []int{0, 0, 0})
	}
	_, err := dist.New(dist.Options{Replicas: 1, Reform: dist.ReformAtNextRun})
	fails(t, err, dist.ErrInvalidArgument, "dist.MultiWorkerMirrored")
	_, err = dist.New(dist.Options{Kind: dist.MultiWorkerMirrored, Reform: 2})
	fails(t, err, dist.ErrInvalidArgument, "dist.ReformExplicit")

	s := apart(t, 2)
	for words, wrong := range map[string]dist.ReformOptions{
		"MinWorkers is 3":              {MinWorkers: 3},
		"MinWorkers is -1":             {MinWorkers: -1},
		"MinWorkers is -1099511627776": {MinWorkers: -1 << 40},
		"Window is -1":                 {Window: -1},
	} {
		fails(t, s.Reform(background, &wrong), dist.ErrInvalidArgument, words)
	}
	over, cancel := context.WithCancelCause(background)
	cause := errors.New("enough")
	cancel(cause)
	if err := s.Reform(over, nil); !errors.Is(err, dist.ErrCancelled) || !errors.Is(err, cause) {
		t.Error(err)
	}
	fails(t, newWorkers(t, dist.CallerThread, 1, 1)[0].Reform(background, nil), dist.ErrUnimplemented, "Options.Network")
	var none *dist.Strategy
	fails(t, none.Reform(background, &dist.ReformOptions{Timeout: time.Second}), dist.ErrInvalidArgument, "")
	_, err = none.ReformDue()
	fails(t, err, dist.ErrInvalidArgument, "")
	s.Close()
	fails(t, s.Reform(background, nil), dist.ErrFailedPrecondition, "closed")
	_, err = s.ReformDue()
	fails(t, err, dist.ErrFailedPrecondition, "closed")
}
