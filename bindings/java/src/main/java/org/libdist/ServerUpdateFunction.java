// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.List;

/** How a parameter server changes variables, see {@link Server#registerUpdate}. */
@FunctionalInterface
public interface ServerUpdateFunction {
    /**
     * Gets variables that lie there alike, whose elements it writes, and what was given with the update, NONE where that
     * was nothing; all of it is over when it returns. Of a divided variable it is called for each part: tensors in the
     * arguments that have the variable's shape are the rows of this part. Where it throws, nothing has changed on this server, and who
     * has asked for the update hears of it. One call at a time is made, on any thread.
     */
    void update(List<Elements> variables, Value arguments) throws Exception;
}
