// SPDX-License-Identifier: Apache-2.0

package dist

import "libdist.example/dist/internal/cdist"

// A Network connects workers that are strategies of this process, for tests and experiments. Set it in
// Options.Network of each worker, together with a ClusterResolver that states which worker it is. Each worker
// runs on a goroutine of its own.
//
// A worker joins the network once, when its strategy is created, and leaves it when the strategy is closed.
// Its place is not reused. All workers must make the same calls in the same order: runs, and calls that
// reduce, gather, create variables or read variables that are synchronized on reading. These calls wait for
// the other workers, up to Options.Timeout.
type Network struct{ object }

// NewNetwork returns a network for the given number of workers. options may be nil. The caller must close the
// network.
func NewNetwork(numWorkers int, options *NetworkOptions) (*Network, error) {
	if options == nil {
		options = &NetworkOptions{}
	}
	var u uses
	defer u.end()
	numWorkers, native := u.int32("numWorkers", numWorkers), options.native(&u)
	defer cdist.DeleteDist_network_options(native)
	native.Count_memory()
	if u.err != nil {
		return nil, u.err
	}
	var out int64
	if err := cdist.Dist_network_create(numWorkers, native, &out); err != nil {
		return nil, fromNative(err)
	}
	n := &Network{}
	n.given = u.keep()
	n.open(out, cdist.Dist_network_destroy, nil)
	return n, nil
}

// Close releases the network. Strategies that use it keep it. Closing a nil or closed network does nothing.
func (n *Network) Close() error {
	if n != nil {
		n.close()
	}
	return nil
}

func (u *uses) network(n *Network) int64 {
	if n == nil {
		return 0
	}
	return u.takeMade(&n.object, "network")
}
