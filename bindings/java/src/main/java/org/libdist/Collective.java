// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/** Which collective an exception, or a row of {@link Strategy#stragglers}, speaks of. */
public enum Collective {
    /** None. */
    NONE,
    /** {@link Replica#allReduce}. */
    ALL_REDUCE,
    /** {@link Replica#broadcast}. */
    BROADCAST,
    /** {@link Replica#barrier}. */
    BARRIER,
    /** {@link Replica#mergeCall}, and what meets as it does. */
    MERGE_CALL,
    /** The end of the replica function, where all meet too. */
    RETURN,
    /** {@link Replica#reduceToRoot}. */
    REDUCE,
    /** {@link Replica#reduceScatter}. */
    REDUCE_SCATTER,
    /** {@link Replica#allGather}. */
    ALL_GATHER,
    /** {@link Replica#gatherToRoot}. */
    GATHER,
    /** {@link Replica#scatterFromRoot}. */
    SCATTER,
    /** {@link Replica#allToAll}. */
    ALL_TO_ALL,
    /** {@link Replica#scan}. */
    SCAN,
    /** {@link Replica#permute}. */
    PERMUTE,
    /** {@link Replica#reduceApply}. */
    REDUCE_APPLY,
    /** {@link Replica#haloExchange}. */
    HALO_EXCHANGE,
    /** {@link Replica#reshard}. */
    RESHARD,
    /** One that a later version has. */
    OTHER;

    private static final Collective[] BY_CODE = values();

    static Collective of(int code) {
        return code >= 0 && code < OTHER.ordinal() ? BY_CODE[code] : OTHER;
    }
}
