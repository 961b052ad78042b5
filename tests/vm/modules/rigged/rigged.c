// SPDX-License-Identifier: GPL-2.0
/*
 * Makes an RDMA device misbehave, for tests: it does not destroy queue pairs, destroys them slowly,
 * or breaks them; it refuses work requests, or takes and forgets them; its memory is mapped through
 * the DMA API, with bounce copies (as with swiotlb), or only up to some size at a time.
 *
 * For Soft-RoCE, which takes the kernel's addresses for bus addresses: mapping returns kernel
 * addresses, too, of the memory or of its copy.
 */
#include <linux/delay.h>
#include <linux/dma-map-ops.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

static char *device = "rxe0";
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "which");

static bool dma;
module_param(dma, bool, 0444);
MODULE_PARM_DESC(dma, "its memory is mapped through the DMA API");

static bool bounce;
module_param(bounce, bool, 0444);
MODULE_PARM_DESC(bounce, "with copies");

static ulong map_max = ULONG_MAX;
module_param(map_max, ulong, 0644);
MODULE_PARM_DESC(map_max, "so many bytes at most at a time");

static atomic_t map_refused;
static int refused_get(char *buf, const struct kernel_param *kp)
{
	return sprintf(buf, "%d\n", atomic_read(&map_refused));
}

static const struct kernel_param_ops refused_ops = { .get = refused_get };
module_param_cb(map_refused, &refused_ops, NULL, 0444);
MODULE_PARM_DESC(map_refused, "how many were more");

static uint keep;
module_param(keep, uint, 0644);
MODULE_PARM_DESC(keep, "so many queue pairs are not destroyed");

static uint destroy_ms;
module_param(destroy_ms, uint, 0644);
MODULE_PARM_DESC(destroy_ms, "how long it takes to destroy one");

static uint breaks;
module_param(breaks, uint, 0644);
MODULE_PARM_DESC(breaks, "so many queue pairs break as soon as they are connected");

static atomic_t refuse;
static int refuse_set(const char *val, const struct kernel_param *kp)
{
	int n;
	int err = kstrtoint(val, 0, &n);

	if (!err)
		atomic_set(&refuse, n);
	return err;
}

static const struct kernel_param_ops refuse_ops = { .set = refuse_set };
module_param_cb(refuse, &refuse_ops, NULL, 0200);
MODULE_PARM_DESC(refuse, "so many posts on connections, the next ones, fail");

static bool forget;
module_param(forget, bool, 0644);
MODULE_PARM_DESC(forget, "what is posted on connections is not carried out");

static atomic_t forgotten;
static int forgotten_get(char *buf, const struct kernel_param *kp)
{
	return sprintf(buf, "%d\n", atomic_read(&forgotten));
}

static const struct kernel_param_ops forgotten_ops = { .get = forgotten_get };
module_param_cb(forgotten, &forgotten_ops, NULL, 0444);
MODULE_PARM_DESC(forgotten, "how many posts were not");

static struct ib_device *rigged;
static struct platform_device *bus;
static int (*destroy_qp)(struct ib_qp *qp, struct ib_udata *udata);
static int (*modify_qp)(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
			struct ib_udata *udata);
static int (*post_send)(struct ib_qp *qp, const struct ib_send_wr *wr,
			const struct ib_send_wr **bad);

/* Connected queue pairs, by number. The lock keeps them from being destroyed while they break. */
static DEFINE_XARRAY(connected);
static DEFINE_MUTEX(connected_lock);

static int break_all(const char *val, const struct kernel_param *kp)
{
	struct ib_qp_attr broken = { .qp_state = IB_QPS_ERR };
	unsigned long number;
	struct ib_qp *qp;

	mutex_lock(&connected_lock);
	xa_for_each(&connected, number, qp)
		modify_qp(qp, &broken, IB_QP_STATE, NULL);
	mutex_unlock(&connected_lock);
	return 0;
}

static const struct kernel_param_ops break_ops = { .set = break_all };
module_param_cb(break_all, &break_ops, NULL, 0200);
MODULE_PARM_DESC(break_all, "written to: all connected queue pairs break");

static int rigged_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			    const struct ib_send_wr **bad)
{
	if (qp->qp_type == IB_QPT_RC && atomic_dec_if_positive(&refuse) >= 0) {
		*bad = wr;
		return -ENOMEM;
	}
	if (!forget || qp->qp_type != IB_QPT_RC)
		return post_send(qp, wr, bad);
	atomic_inc(&forgotten);
	return 0;
}

static int rigged_destroy_qp(struct ib_qp *qp, struct ib_udata *udata)
{
	mutex_lock(&connected_lock);
	xa_erase(&connected, qp->qp_num);
	mutex_unlock(&connected_lock);
	if (keep) {
		keep--;
		return -EIO;
	}
	if (destroy_ms)
		msleep(destroy_ms);
	return destroy_qp(qp, udata);
}

static int rigged_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
			    struct ib_udata *udata)
{
	struct ib_qp_attr broken = { .qp_state = IB_QPS_ERR };
	int err = modify_qp(qp, attr, mask, udata);

	if (err || qp->qp_type != IB_QPT_RC || !(mask & IB_QP_STATE) ||
	    attr->qp_state != IB_QPS_RTS)
		return err;
	xa_store(&connected, qp->qp_num, qp, GFP_KERNEL);
	if (!breaks)
		return 0;
	breaks--;
	return modify_qp(qp, &broken, IB_QP_STATE, udata);
}

struct copy {
	struct list_head list;
	void *mem;
	void *of;
	size_t size;
};

static LIST_HEAD(copies);
static DEFINE_SPINLOCK(copies_lock);

static dma_addr_t copy_make(void *of, size_t size)
{
	struct copy *c = kzalloc(sizeof(*c), GFP_ATOMIC);

	if (c)
		c->mem = kmemdup(of, size, GFP_ATOMIC);
	if (!c || !c->mem) {
		kfree(c);
		return DMA_MAPPING_ERROR;
	}
	c->of = of;
	c->size = size;
	spin_lock(&copies_lock);
	list_add(&c->list, &copies);
	spin_unlock(&copies_lock);
	return (dma_addr_t)(uintptr_t)c->mem;
}

/* Copy back; @end: also free the copy. */
static void copy_back(dma_addr_t addr, bool end)
{
	struct copy *c, *next;

	spin_lock(&copies_lock);
	list_for_each_entry_safe(c, next, &copies, list) {
		if ((uintptr_t)c->mem != addr)
			continue;
		memcpy(c->of, c->mem, c->size);
		if (!end)
			continue;
		list_del(&c->list);
		kfree(c->mem);
		kfree(c);
	}
	spin_unlock(&copies_lock);
}

static dma_addr_t rigged_map_page(struct device *dev, struct page *page,
				  unsigned long offset, size_t size,
				  enum dma_data_direction dir,
				  unsigned long attrs)
{
	void *mem = page_address(page) + offset;

	if (size > map_max) {
		atomic_inc(&map_refused);
		return DMA_MAPPING_ERROR;
	}
	/* Smaller mappings belong to the connection manager. */
	if (bounce && size >= PAGE_SIZE)
		return copy_make(mem, size);
	return (dma_addr_t)(uintptr_t)mem;
}

static void rigged_unmap_page(struct device *dev, dma_addr_t addr, size_t size,
			      enum dma_data_direction dir, unsigned long attrs)
{
	copy_back(addr, true);
}

static int rigged_map_sg(struct device *dev, struct scatterlist *sgl, int nents,
			 enum dma_data_direction dir, unsigned long attrs)
{
	struct scatterlist *sg;
	int i;

	for_each_sg(sgl, sg, nents, i) {
		sg_dma_address(sg) = (dma_addr_t)(uintptr_t)sg_virt(sg);
		sg_dma_len(sg) = sg->length;
	}
	return nents;
}

static void rigged_unmap_sg(struct device *dev, struct scatterlist *sgl,
			    int nents, enum dma_data_direction dir,
			    unsigned long attrs)
{
}

static void sync_for_cpu(struct device *dev, dma_addr_t addr, size_t size,
			 enum dma_data_direction dir)
{
	copy_back(addr, false);
}

static void sync_for_device(struct device *dev, dma_addr_t addr, size_t size,
			    enum dma_data_direction dir)
{
}

static const struct dma_map_ops rigged_dma_ops = {
	.map_page = rigged_map_page,
	.unmap_page = rigged_unmap_page,
	.map_sg = rigged_map_sg,
	.unmap_sg = rigged_unmap_sg,
	.sync_single_for_cpu = sync_for_cpu,
	.sync_single_for_device = sync_for_device,
};

static int rigged_add(struct ib_device *dev)
{
	if (rigged || strcmp(dev_name(&dev->dev), device))
		return -EOPNOTSUPP;
	rigged = dev;
	destroy_qp = dev->ops.destroy_qp;
	dev->ops.destroy_qp = rigged_destroy_qp;
	modify_qp = dev->ops.modify_qp;
	dev->ops.modify_qp = rigged_modify_qp;
	post_send = dev->ops.post_send;
	dev->ops.post_send = rigged_post_send;
	if (bus)
		dev->dma_device = &bus->dev;
	return 0;
}

static void rigged_remove(struct ib_device *dev, void *data)
{
	if (dev != rigged)
		return;
	dev->ops.destroy_qp = destroy_qp;
	dev->ops.modify_qp = modify_qp;
	dev->ops.post_send = post_send;
	if (bus)
		dev->dma_device = NULL;
	rigged = NULL;
}

static struct ib_client client = {
	.name = "rigged",
	.add = rigged_add,
	.remove = rigged_remove,
};

static int __init rigged_init(void)
{
	int err;

	if (dma) {
		bus = platform_device_register_simple("rigged", -1, NULL, 0);
		if (IS_ERR(bus))
			return PTR_ERR(bus);
		err = dma_coerce_mask_and_coherent(&bus->dev, DMA_BIT_MASK(64));
		if (err)
			goto err_bus;
		set_dma_ops(&bus->dev, &rigged_dma_ops);
	}
	err = ib_register_client(&client);
	if (!err && rigged)
		return 0;
	if (!err)
		ib_unregister_client(&client);
	err = err ?: -ENODEV;
err_bus:
	if (bus)
		platform_device_unregister(bus);
	return err;
}
module_init(rigged_init);

static void __exit rigged_exit(void)
{
	ib_unregister_client(&client);
	if (bus)
		platform_device_unregister(bus);
}
module_exit(rigged_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("RDMA devices that behave badly, for tests of LITE");
