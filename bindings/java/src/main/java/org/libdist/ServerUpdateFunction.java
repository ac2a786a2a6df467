// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.List;

/** Changes variables on a parameter server; see {@link Server#registerUpdate}. */
@FunctionalInterface
public interface ServerUpdateFunction {
    /**
     * Receives variables, whose elements it writes, and the value that was passed with the update, of kind
     * NONE if there was none. All of them are valid only during the call. The variables have the same parts
     * on the same servers; for a divided variable, the function is called for each part, and tensors in the
     * arguments that have the variable's shape are replaced by the rows of this part. If it throws, nothing
     * changes on this server, and the caller that requested the update receives the error. One call is made
     * at a time, on any thread.
     */
    void call(List<Elements> variables, Value arguments) throws Exception;
}
