/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef GPU_H_
#define GPU_H_

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>

/**
 * What the tests need of CUDA's driver. It is looked for when a test starts, so
 * that the tests build without CUDA and are skipped where there is no GPU. Names
 * and numbers are those of NVIDIA's "CUDA Driver API" manual. One thread.
 */
class gpu {
public:
    typedef unsigned long long pointer_t;

    /** @return The first GPU, with a context for the calling thread, or one that
     *  says why there is none. It stays until the process ends: UCX's domains
     *  may outlive a test. */
    static gpu &get()
    {
        static gpu only;
        return only;
    }

    bool is_there() const
    {
        return m_reason == nullptr;
    }

    const char *reason() const
    {
        return m_reason;
    }

    /** @return 0 if the driver has no such memory, as for all below. */
    void *alloc(size_t length)
    {
        pointer_t address = 0;
        return given(mem_alloc(&address, length), address);
    }

    void *alloc_managed(size_t length)
    {
        pointer_t address = 0;
        return given(mem_alloc_managed(&address, length, ATTACH_GLOBAL),
                     address);
    }

    /** From the pool of the default stream. */
    void *alloc_async(size_t length)
    {
        pointer_t address = 0;
        return (mem_alloc_async == nullptr) ? nullptr :
               given(mem_alloc_async(&address, length, nullptr), address);
    }

    void *alloc_host(size_t length)
    {
        void *address = nullptr;
        return (mem_alloc_host(&address, length) == 0) ? address : nullptr;
    }

    bool free(void *address)
    {
        return mem_free((pointer_t)address) == 0;
    }

    bool free_async(void *address)
    {
        return (mem_free_async((pointer_t)address, nullptr) == 0) &&
               (stream_synchronize(nullptr) == 0);
    }

    bool free_host(void *address)
    {
        return mem_free_host(address) == 0;
    }

    bool fill(void *address, unsigned char value, size_t length)
    {
        return (memset_d8((pointer_t)address, value, length) == 0) &&
               (ctx_synchronize() == 0);
    }

    bool copy_to_host(void *to, const void *from, size_t length)
    {
        return memcpy_dtoh(to, (pointer_t)from, length) == 0;
    }

    bool pin(void *address, size_t length)
    {
        return mem_host_register(address, length, 0) == 0;
    }

    bool unpin(void *address)
    {
        return mem_host_unregister(address) == 0;
    }

    /** @return A dmabuf descriptor of the caller's, or -1. Address and length
     *  are multiples of the host's page size. */
    int descriptor(void *address, size_t length)
    {
        int fd = -1;

        if ((handle_for_range == nullptr) ||
            (handle_for_range(&fd, (pointer_t)address, length, HANDLE_DMA_BUF,
                              0) != 0)) {
            return -1;
        }
        return fd;
    }

private:
    enum {
        ATTACH_GLOBAL  = 1, /* CU_MEM_ATTACH_GLOBAL */
        HANDLE_DMA_BUF = 1  /* CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD */
    };

    gpu()
    {
        void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
        void *context = nullptr;
        int device    = 0;

        if (library == nullptr) {
            m_reason = "no driver of CUDA";
            return;
        }

        int (*init)(unsigned)               = nullptr;
        int (*device_get)(int*, int)        = nullptr;
        int (*ctx_retain)(void**, int)      = nullptr;
        int (*ctx_set)(void*)               = nullptr;
        bool has_all = find(library, "cuInit", init) &
                       find(library, "cuDeviceGet", device_get) &
                       find(library, "cuDevicePrimaryCtxRetain", ctx_retain) &
                       find(library, "cuCtxSetCurrent", ctx_set) &
                       find(library, "cuCtxSynchronize", ctx_synchronize) &
                       find(library, "cuStreamSynchronize",
                            stream_synchronize) &
                       find(library, "cuMemAlloc_v2", mem_alloc) &
                       find(library, "cuMemAllocManaged", mem_alloc_managed) &
                       find(library, "cuMemAllocHost_v2", mem_alloc_host) &
                       find(library, "cuMemFree_v2", mem_free) &
                       find(library, "cuMemFreeHost", mem_free_host) &
                       find(library, "cuMemHostRegister_v2",
                            mem_host_register) &
                       find(library, "cuMemHostUnregister",
                            mem_host_unregister) &
                       find(library, "cuMemsetD8_v2", memset_d8) &
                       find(library, "cuMemcpyDtoH_v2", memcpy_dtoh);

        find(library, "cuMemAllocAsync", mem_alloc_async);
        find(library, "cuMemFreeAsync", mem_free_async);
        find(library, "cuMemGetHandleForAddressRange", handle_for_range);
        if (!has_all) {
            m_reason = "the driver of CUDA is too old";
        } else if ((init(0) != 0) || (device_get(&device, 0) != 0)) {
            m_reason = "no GPU";
        } else if ((ctx_retain(&context, device) != 0) ||
                   (ctx_set(context) != 0)) {
            m_reason = "the GPU gives no context";
        }
    }

    /* By reference: the call that fills it is an argument, too */
    static void *given(int error, const pointer_t &address)
    {
        return (error == 0) ? (void*)address : nullptr;
    }

    template <typename F>
    static bool find(void *library, const char *name, F *&function)
    {
        function = (F*)dlsym(library, name);
        return function != nullptr;
    }

    int (*ctx_synchronize)()                                     = nullptr;
    int (*stream_synchronize)(void*)                             = nullptr;
    int (*mem_alloc)(pointer_t*, size_t)                         = nullptr;
    int (*mem_alloc_managed)(pointer_t*, size_t, unsigned)       = nullptr;
    int (*mem_alloc_async)(pointer_t*, size_t, void*)            = nullptr;
    int (*mem_alloc_host)(void**, size_t)                        = nullptr;
    int (*mem_free)(pointer_t)                                   = nullptr;
    int (*mem_free_async)(pointer_t, void*)                      = nullptr;
    int (*mem_free_host)(void*)                                  = nullptr;
    int (*mem_host_register)(void*, size_t, unsigned)            = nullptr;
    int (*mem_host_unregister)(void*)                            = nullptr;
    int (*memset_d8)(pointer_t, unsigned char, size_t)           = nullptr;
    int (*memcpy_dtoh)(void*, pointer_t, size_t)                 = nullptr;
    int (*handle_for_range)(void*, pointer_t, size_t, int,
                            unsigned long long)                  = nullptr;
    const char *m_reason                                         = nullptr;
};

#endif
