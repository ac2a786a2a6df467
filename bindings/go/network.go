// SPDX-License-Identifier: Apache-2.0

package dist

import "libdist.example/dist/internal/cdist"

// Network is how workers that are strategies of this process reach each other, for tests and for trying things out:
// Options.Network of each of them, with a ClusterResolver that says which worker it is. Each runs on a goroutine of its
// own.
//
// A worker joins the network once, when its strategy is made; it has left when that has ended, and nobody can take its
// place. All workers make the same calls in the same order: runs, and what reduces, gathers, creates variables or reads
// one that is synchronized on reading. Those wait for the other workers, until Options.Timeout.
type Network struct{ object }

// NetworkOptions are the rare choices of NewNetwork.
type NetworkOptions struct {
	CreditBytes int64 // how far a worker may run ahead of each other one; 0: 1 MiB; else 4 KiB or more
}

// NewNetwork makes the network of that many workers; options may be nil. Close it.
func NewNetwork(numWorkers int, options *NetworkOptions) (*Network, error) {
	if err := checkInt32("numWorkers", numWorkers); err != nil {
		return nil, err
	}
	native := cdist.NewDist_network_options()
	defer cdist.DeleteDist_network_options(native)
	native.Count_memory()
	if options != nil {
		native.SetCredit_bytes(options.CreditBytes)
	}
	var out int64
	if err := cdist.Dist_network_create(numWorkers, native, &out); err != nil {
		return nil, fromNative(err)
	}
	n := &Network{}
	n.open(out, cdist.Dist_network_destroy, nil)
	return n, nil
}

// Close gives the network up; strategies that are in it keep it. Closing twice, and nil, are fine.
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
	return u.take(&n.object, "network")
}
