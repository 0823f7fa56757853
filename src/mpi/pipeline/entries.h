/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef MPI_PIPELINE_ENTRIES_H_
#define MPI_PIPELINE_ENTRIES_H_

/*
 * The functions of MPI that the layer stands in front of, without their
 * prefix, in the order of the stub's slots. The assembler reads this, too.
 */
#define MPI_PIPELINE_ENTRIES_3(_) \
    _(Init) _(Init_thread) _(Finalize) \
    _(Send) _(Ssend) _(Rsend) _(Bsend) \
    _(Isend) _(Issend) _(Irsend) _(Ibsend) \
    _(Send_init) _(Ssend_init) _(Rsend_init) _(Bsend_init) \
    _(Recv) _(Irecv) _(Recv_init) _(Mrecv) _(Imrecv) \
    _(Start) _(Startall) _(Sendrecv) _(Sendrecv_replace) \
    _(Wait) _(Waitall) _(Waitany) _(Waitsome) \
    _(Test) _(Testall) _(Testany) _(Testsome) \
    _(Cancel) _(Request_free) _(Request_get_status) \
    _(Probe) _(Iprobe) _(Mprobe) _(Improbe) \
    _(Comm_dup) _(Comm_dup_with_info) _(Comm_create) _(Comm_create_group) \
    _(Comm_split) _(Comm_split_type) _(Intercomm_merge) \
    _(Cart_create) _(Cart_sub) _(Graph_create) \
    _(Dist_graph_create) _(Dist_graph_create_adjacent)

/* Those of MPI 4, which an MPI may lack */
#define MPI_PIPELINE_ENTRIES_4(_) \
    _(Send_c) _(Ssend_c) _(Rsend_c) _(Bsend_c) \
    _(Isend_c) _(Issend_c) _(Irsend_c) _(Ibsend_c) \
    _(Send_init_c) _(Ssend_init_c) _(Rsend_init_c) _(Bsend_init_c) \
    _(Recv_c) _(Irecv_c) _(Recv_init_c) _(Mrecv_c) _(Imrecv_c) \
    _(Sendrecv_c) _(Sendrecv_replace_c) \
    _(Isendrecv) _(Isendrecv_c) _(Isendrecv_replace) _(Isendrecv_replace_c)

#define MPI_PIPELINE_ENTRIES(_) \
    MPI_PIPELINE_ENTRIES_3(_) MPI_PIPELINE_ENTRIES_4(_)

#ifndef __ASSEMBLER__

#define MPI_PIPELINE_ENTRY_INDEX(_name) MPI_PIPELINE_##_name,

enum {
    MPI_PIPELINE_ENTRIES(MPI_PIPELINE_ENTRY_INDEX)
    MPI_PIPELINE_NUM_ENTRIES
};

typedef void (*mpi_pipeline_func_t)(void);

/** What UCP's function is called by. */
typedef unsigned (*mpi_pipeline_progress_func_t)(void *worker);

/** What the stub hands to the module. */
typedef struct mpi_pipeline_door {
    mpi_pipeline_func_t *slots;  /**< where calls go; the real ones at first */
    mpi_pipeline_func_t *real;   /**< the MPI's own */
    /** Have calls of ucp_worker_progress go through @a hook, which gets the
     *  real function for it; NULL: straight again. */
    mpi_pipeline_progress_func_t (*set_progress)(
            mpi_pipeline_progress_func_t hook);
} mpi_pipeline_door_t;

/** The module's only symbol; it fills the slots. */
typedef void (*mpi_pipeline_open_func_t)(const mpi_pipeline_door_t *door);

#define MPI_PIPELINE_OPEN "mpi_pipeline_open"

/* Beside the text of the options, for the stub and the module alike */
#define MPI_PIPELINE_ENV_VERBOSE "HELPER_MD_PIPELINE_VERBOSE"
#define MPI_PIPELINE_LINE        "ucx_pipeline_mpi: "

#endif
#endif
