// SPDX-License-Identifier: GPL-2.0
/* Module init and exit. */
#include <linux/module.h>
#include <linux/sched.h>

#include "fabric/fabric.h"
#include "interface/node.h"
#include "memory/unpinned/unpinned.h"

static int __init lite_init(void)
{
	int err = lite_unpinned_init();

	if (err)
		return err;
	err = lite_chardev_init();
	if (err)
		goto err_unpinned;
	err = lite_registry_init();
	if (err)
		goto err_chardev;
	err = lite_netlink_init();
	if (err)
		goto err_registry;
	return 0;

err_registry:
	lite_registry_exit();
	lite_registry_free();
err_chardev:
	lite_chardev_exit();
err_unpinned:
	lite_unpinned_exit();
	return err;
}

static void __exit lite_exit(void)
{
	/*
	 * End the nodes first, and so the commands in flight: unregistering the netlink family
	 * waits for these, and blocks all generic netlink of the machine meanwhile.
	 */
	lite_registry_exit();
	lite_netlink_exit();
	lite_registry_free();
	lite_chardev_exit();
	lite_unpinned_exit();
	rcu_barrier();
	if (!lite_conns_are_kept())
		return;
	/* It is too late to refuse: only a node's end, above, shows what its device keeps. */
	pr_crit("lite: a device keeps queue pairs: the module stays until the machine restarts\n");
	for (;;) {
		set_current_state(TASK_IDLE | TASK_FREEZABLE);
		schedule();
	}
}

module_init(lite_init);
module_exit(lite_exit);

MODULE_DESCRIPTION("LITE: an indirection layer for RDMA");
MODULE_AUTHOR("The LITE authors");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.1.0");
MODULE_SOFTDEP("pre: rdma_cm hmac sha256");
