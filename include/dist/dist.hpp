// SPDX-License-Identifier: Apache-2.0
//
// dist/dist.hpp: libdist for C++17, header only, over the C API alone, and all of it: objects that end themselves,
// exceptions, lambdas. What each call does is said in dist/dist.h; a method has its C function's name, without what the
// object says already: dist_all_reduce(replica, ...) is replica.all_reduce(...).
//
//     dist::strategy strategy(2);
//     strategy.run([](dist::replica replica) {
//       std::vector<float> gradient{1, 2, 3};
//       replica.all_reduce(dist::reduce_op::sum, gradient);
//     });
//
//   - A failing call throws dist::error. An exception that leaves a function of the host's (a replica's, a merge or update
//     function, a source, ...) never crosses the C interface: it ends what called it, and arrives, as itself, at the caller
//     of that. Where nobody could catch it, as inside a reduction's operator, the function must be noexcept.
//   - What is named x_ref is a handle to copy at will; x itself ends what it holds. Collectives allocate nothing.
//   - What is const, or immutable as a value is, is read: as a const_tensor, from which no tensor comes, so that a call that
//     would write to it does not compile. A handle's const is a pointer's: it says nothing of what the handle names.
//   - Options are C's own structs, begun with DIST_..._OPTIONS_INIT, but for collective_options.
#ifndef DIST_DIST_HPP
#define DIST_DIST_HPP

#include "hpp/cancel.hpp"        //  3  cancel objects
#include "hpp/checkpoint.hpp"    // 14  checkpoints
#include "hpp/collectives.hpp"   //  6  groups, collectives, work
#include "hpp/cross_device.hpp"  //  9  functions of the host's for it
#include "hpp/dataset.hpp"       // 10  datasets
#include "hpp/devices.hpp"       // 15  logical devices
#include "hpp/error.hpp"         //  2  version, errors
#include "hpp/inspect.hpp"       // 11  looking inside
#include "hpp/metric.hpp"        // 12  metrics and losses
#include "hpp/names.hpp"         //  3  names of numbers
#include "hpp/outside.hpp"       //  9  from outside: reduce, update
#include "hpp/replica.hpp"       //  5  inside a replica
#include "hpp/run.hpp"           //  4  runs, merge calls, optimizer steps
#include "hpp/scope.hpp"         // 13  scopes
#include "hpp/strategy.hpp"      //  3  strategies
#include "hpp/tensor.hpp"        //     views of memory, operators
#include "hpp/topology.hpp"      // 15  topologies, device assignments
#include "hpp/value.hpp"         //  7  values
#include "hpp/variable.hpp"      //  8  variables

#endif  // DIST_DIST_HPP
