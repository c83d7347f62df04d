"""Tells plimsoll what a playbook does: a line of JSON on file descriptor 3 for everything that happens."""
import json
import os

from ansible.executor import module_common
from ansible.plugins.callback import CallbackBase
from ansible.plugins.shell import ShellBase

DOCUMENTATION = '''
  name: plimsoll
  type: notification
  short_description: tells plimsoll what a playbook does
  description: Writes a line of JSON to file descriptor 3 for everything that happens.
'''

# Folders that Ansible makes on hosts bear the name of ours here, by which they are found when it is killed.
_folder = 'ansible-tmp-' + os.path.basename(os.path.dirname(os.environ['ANSIBLE_CONFIG']))
_named = ShellBase._generate_temp_dir_name
ShellBase._generate_temp_dir_name = staticmethod(lambda: _named().replace('ansible-tmp', _folder, 1))
# So do those that modules unpack themselves into, where this version of Ansible has their beginning as a text.
_unpacks = getattr(module_common, 'ACTIVE_ANSIBALLZ_TEMPLATE', None)
if isinstance(_unpacks, str):
    module_common.ACTIVE_ANSIBALLZ_TEMPLATE = _unpacks.replace("prefix='ansible_", "prefix='%s_" % _folder)


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = 'notification'
    CALLBACK_NAME = 'plimsoll'
    CALLBACK_NEEDS_ENABLED = True

    def _say(self, kind, **more):
        os.write(3, (json.dumps(dict(more, kind=kind)) + '\n').encode())

    def _host(self, kind, result, **more):
        r = result._result
        said = [str(r.get(k) or '') for k in ('msg', 'stderr', 'stdout')]
        if 'results' in r:  # of a loop
            said += [str(i.get('msg') or '') for i in r['results'] if isinstance(i, dict) and i.get('failed')]
        text = '; '.join(s.strip()[-700:] for s in said if s.strip())[:4000]
        self._say(kind, host=result._host.get_name(), task=result._task.get_name(), text=text, **more)

    def v2_playbook_on_task_start(self, task, is_conditional):
        self._say('task', task=task.get_name())

    def v2_playbook_on_no_hosts_matched(self):
        self._say('nobody')

    def v2_runner_on_failed(self, result, ignore_errors=False):
        self._host('failed', result, ignored=bool(ignore_errors))

    def v2_runner_on_unreachable(self, result):
        self._host('unreachable', result)

    def v2_playbook_on_stats(self, stats):
        for host in sorted(stats.processed):
            s = stats.summarize(host)
            self._say('recap', host=host, ok=s['ok'], changed=s['changed'], failed=s['failures'],
                      unreachable=s['unreachable'], skipped=s['skipped'], ignored=s['ignored'])
