// SPDX-License-Identifier: Apache-2.0
// What Gloo's tcp/pair.h and tcp/context.h need of a header of Gloo's that Debian's package leaves out; found only where
// Gloo's own is not. It has what those declare their members with: of the same size, and copied and let go in the same way.
#pragma once

#include <memory>

namespace gloo {

template <class T>
class NonOwningPtr;

template <class T>
class WeakNonOwningPtr final {
 protected:
  std::weak_ptr<T> ptr_;
};

}  // namespace gloo
