"""Whatever changes a value in a way that is not followed leaves it unknown."""

import pytest

from pypi_assets.distributions.setup_script import read_setup_script

START = "from setuptools import setup\nreq = ['benign']\n"
END = "\nsetup(name='demo', packages=['demo'], install_requires=req)\n"
CHANGING: dict[str, list[str]] = {
    "match ['evil']:\n  case req: pass": ["evil"],
    "match {'a':1,'b':2}:\n  case {'a':1, **req}: pass\nreq=list(req)": ["b"],
    "match 1:\n  case 1: req=['evil']": ["evil"],
    "try:\n  raise ValueError\nexcept ValueError as req: req2=1\nreq=['evil']": ["evil"],
    "f=req.append\nf('evil')": ["benign", "evil"],
    "list(map(req.append,['evil']))": ["benign", "evil"],
    "vars().update(req=['evil'])": ["evil"],
    "globals()['req']=['evil']": ["evil"],
    "locals()['req'].append('evil')": ["benign", "evil"],
    "g=globals\ng()['req']=['evil']": ["evil"],
    "globals().update({'req':['evil']})": ["evil"],
    "(lambda: req.append('evil'))()": ["benign", "evil"],
    "f=lambda: req.append('evil')\nf()": ["benign", "evil"],
    "f=lambda: req.append('evil')\nreq=['benign']\nf()": ["benign", "evil"],
    "def d(f): req.append('evil')\n@d\ndef g(): pass": ["benign", "evil"],
    "def d(f):\n  req.append('evil')\n  return f\n@d\nclass G: pass": ["benign", "evil"],
    "class A:\n  req.append('evil')": ["benign", "evil"],
    "class A:\n  def __init__(self): req.append('evil')\nA()": ["benign", "evil"],
    "class A:\n  def m(self): req.append('evil')\nA().m()": ["benign", "evil"],
    "class A:\n  @staticmethod\n  def m(): req.append('evil')\nA.m()": ["benign", "evil"],
    (
        "class M(type):\n  def __new__(c,*a,**k):\n"
        "    req.append('evil')\n    return type.__new__(c,*a,**k)\nclass A(metaclass=M): pass"
    ): [
        "benign",
        "evil",
    ],
    "class B:\n  def __init_subclass__(cls): req.append('evil')\nclass C(B): pass": ["benign", "evil"],
    "class A:\n  def __getattr__(self,n): req.append('evil')\nA().x": ["benign", "evil"],
    "class A:\n  def __enter__(self): req.append('evil')\n  def __exit__(self,*a): pass\nwith A(): pass": [
        "benign",
        "evil",
    ],
    "class A:\n  def __iter__(self):\n    req.append('evil')\n    return iter([])\nfor x in A(): pass": [
        "benign",
        "evil",
    ],
    "class A:\n  def __eq__(self,o):\n    req.append('evil')\n    return True\nA()==1": ["benign", "evil"],
    "class A:\n  def __add__(self,o):\n    req.append('evil')\n    return 1\na=A()\na+1": ["benign", "evil"],
    "def f(): req.append('evil')\nd={'f':f}\nd['f']()": ["benign", "evil"],
    "def f(): req.append('evil')\n[f][0]()": ["benign", "evil"],
    "def f(): req.append('evil')\ng=f\ng()": ["benign", "evil"],
    "def f():\n  global req\n  req=['evil']\nh=[f]\nh[0]()": ["evil"],
    "import functools\nfunctools.partial(req.append,'evil')()": ["benign", "evil"],
    "getattr(req,'append')('evil')": ["benign", "evil"],
    "list.append(req,'evil')": ["benign", "evil"],
    "req.__iadd__(['evil'])": ["benign", "evil"],
    "req.__init__(['evil'])": ["evil"],
    "req.__setitem__(0,'evil')": ["evil"],
    "import operator\noperator.iadd(req,['evil'])": ["benign", "evil"],
    "import operator\noperator.setitem(req,0,'evil')": ["evil"],
    "req[:]=['evil']": ["evil"],
    "req[0]='evil'": ["evil"],
    "del req[0]": [],
    "req*=2": ["benign", "benign"],
    "req+=['evil']": ["benign", "evil"],
    "for req in [['evil']]: pass": ["evil"],
    "for req[0] in ['evil']: pass": ["evil"],
    "for req[0] in map(str,['evil']): pass": ["evil"],
    "[0 for req[0] in ['evil']]": ["evil"],
    "[req.append(x) for x in map(str,['evil'])]": ["benign", "evil"],
    "[0 for x in [1] if (req:=['evil'])]": ["evil"],
    "[(req:=['evil']) for x in map(str,[1])]": ["evil"],
    "{(req:=['evil'])[0]:1 for x in map(str,[1])}": ["evil"],
    "x=[req]\nx[0].append('evil')": ["benign", "evil"],
    "x=[req]\nx[int('0')].append('evil')": ["benign", "evil"],
    "x=(req,)\nfor y in x: y.append('evil')": ["benign", "evil"],
    "for y in zip([req]): y[0].append('evil')": ["benign", "evil"],
    "for y in reversed([req]): y.append('evil')": ["benign", "evil"],
    "max([req,[]],key=len).append('evil')": ["benign", "evil"],
    "x={'a':req}\nx.get('a').append('evil')": ["benign", "evil"],
    "x={'a':req}\nfor k in x: x[k].append('evil')": ["benign", "evil"],
    "x={'a':req}\nfor k,v in x.items(): v.append('evil')": ["benign", "evil"],
    "x={'a':req}\nx[str('a')].append('evil')": ["benign", "evil"],
    "x={'a':req}\nx.pop('a').append('evil')": ["benign", "evil"],
    "x={'a':req}\nlist(x.values())[0].append('evil')": ["benign", "evil"],
    "import os\nx=req if os.sep=='/' else []\nx.append('evil')": ["benign", "evil"],
    "import os\nif os.getpid():\n  x=req\nelse:\n  x=[]\nx.append('evil')": ["benign", "evil"],
    "import os\nx=os.getpid() and req\nx.append('evil')": ["benign", "evil"],
    "x=None or req\nx.append('evil')": ["benign", "evil"],
    "import os\nx=(os.environ.get('NOPE') or req)\nx.append('evil')": ["benign", "evil"],
    "x=req\nx.append('evil')": ["benign", "evil"],
    "x=y=req\ny+=['evil']": ["benign", "evil"],
    "x,*y=[1,req]\ny[0].append('evil')": ["benign", "evil"],
    "def f(x): x.append('evil')\nf(req)": ["benign", "evil"],
    "def f(*a): a[0].append('evil')\nf(req)": ["benign", "evil"],
    "def f(**k): k['x'].append('evil')\nf(x=req)": ["benign", "evil"],
    "def f(x=req): x.append('evil')\nf()": ["benign", "evil"],
    "def f(x=req.append('evil')): pass": ["benign", "evil"],
    "def f(x: req.append('evil')): pass": ["benign", "evil"],
    "y: req.append('evil') = 1": ["benign", "evil"],
    "def o():\n  def i(): req.append('evil')\n  i()\no()": ["benign", "evil"],
    "def o():\n  r=['benign']\n  def i(): r.append('evil')\n  i()\n  return r\nreq=o()": ["benign", "evil"],
    "def o():\n  r=['benign']\n  def i():\n    nonlocal r\n    r=['evil']\n  i()\n  return r\nreq=o()": ["evil"],
    "def g():\n  req.append('evil')\n  yield 1\nlist(g())": ["benign", "evil"],
    "def g():\n  req.append('evil')\n  yield 1\nnext(g())": ["benign", "evil"],
    "import asyncio\nasync def g(): req.append('evil')\nasyncio.run(g())": ["benign", "evil"],
    "import sys\nsys.modules['__main__'].req=['evil']": ["evil"],
    "import __main__\n__main__.req=['evil']": ["evil"],
    "from __main__ import req as r\nr.append('evil')": ["benign", "evil"],
    "exec(\"req=['evil']\")": ["evil"],
    "eval(\"req.append('evil')\")": ["benign", "evil"],
    "exec(\"req.append('evil')\",globals())": ["benign", "evil"],
    "exec(open('other.txt').read())": ["evil"],
    "exec(compile(\"req=['evil']\",'x','exec'))": ["evil"],
    (
        "import setuptools\n_s=setuptools.setup\ndef n(**k):\n"
        "  k['install_requires']=['evil']\n  _s(**k)\nsetuptools.setup=n\nfrom setuptools import setup"
    ): ["evil"],
    "import setuptools\nsetattr(setuptools,'x',1)\nreq=['evil']": ["evil"],
    "def f():\n  return req\nf().append('evil')": ["benign", "evil"],
    "def f():\n  return req\nf()[0]='evil'": ["evil"],
    "a=[req]\na.sort(key=lambda x: x.append('evil'))": ["benign", "evil"],
    "any(req.append('evil') for _ in map(str,[1]))": ["benign", "evil"],
    "[*map(req.append,['evil'])]": ["benign", "evil"],
    "print(*[req.append('evil')])": ["benign", "evil"],
    "print(f\"{req.append('evil')}\")": ["benign", "evil"],
    "assert not req.append('evil')": ["benign", "evil"],
    "x=1 if req.append('evil') else 2": ["benign", "evil"],
    "1 < 2 < len(req.append('evil') or 'abc')": ["benign", "evil"],
    "-len(str(req.append('evil')))": ["benign", "evil"],
    "req.append('evil') == 1": ["benign", "evil"],
    "x = {**{'a': req.append('evil')}}": ["benign", "evil"],
    "x=[1,2][len(str(req.append('evil'))):]": ["benign", "evil"],
    "import sys\nsys._getframe().f_globals['req']=['evil']": ["evil"],
    "(lambda: 0).__globals__['req']=['evil']": ["evil"],
    "def f(): pass\nf.__globals__['req']=['evil']": ["evil"],
    "import types\nreq=types.SimpleNamespace(a=req).a\nreq.append('evil')": ["benign", "evil"],
    "import types\nn=types.SimpleNamespace(a=req)\nn.a.append('evil')": ["benign", "evil"],
    "class N: pass\nn=N()\nn.a=req\nn.a.append('evil')": ["benign", "evil"],
    "class N: a=req\nN.a.append('evil')": ["benign", "evil"],
    "class N:\n  global req\n  req=['evil']": ["evil"],
    "import copy\nx=copy.copy([req])\nx[0].append('evil')": ["benign", "evil"],
    "x=[req].copy()\nx[0].append('evil')": ["benign", "evil"],
    "x=list([req])\nx[0].append('evil')": ["benign", "evil"],
    "x=dict(a=req)\nx['a'].append('evil')": ["benign", "evil"],
    "x=sum([[req]],[])\nx[0].append('evil')": ["benign", "evil"],
    "x=sorted([req])\nx[0].append('evil')": ["benign", "evil"],
    "x=tuple([req])\nx[0].append('evil')": ["benign", "evil"],
    "x=set()\nx.add(1)\nreq.extend(x and ['evil'])": ["benign", "evil"],
    "import atexit\ndef f(): req.append('evil')\nf()": ["benign", "evil"],
    "import itertools\nfor x in itertools.chain([req]): x.append('evil')": ["benign", "evil"],
    "it=iter([req])\nnext(it).append('evil')": ["benign", "evil"],
    "while req.append('evil'): pass": ["benign", "evil"],
    "with open('other.txt') as req: pass\nreq=['evil']": ["evil"],
    "import contextlib\n@contextlib.contextmanager\ndef c():\n  req.append('evil')\n  yield\nwith c(): pass": [
        "benign",
        "evil",
    ],
    "from other import *": ["evil"],
    "def list(x): return ['evil']\nreq=list(req)": ["evil"],
    "from other import sorted\nreq=sorted(req)": ["evil"],
    "str=lambda x: 'evil'\nreq=[str('a')]": ["evil"],
    "class str2(str): pass\nreq=['evil']": ["evil"],
    "len=lambda x: req.append('evil')\nlen(1)": ["benign", "evil"],
    "print=req.append\nprint('evil')": ["benign", "evil"],
    "def print(x): req.append(x)\nprint('evil')": ["benign", "evil"],
    "isinstance=req.append\nisinstance('evil')": ["benign", "evil"],
    "x=req.extend\nx(['evil'])": ["benign", "evil"],
    "y=req.__class__\ny.append(req,'evil')": ["benign", "evil"],
    "req=['benign']\ndel req\nreq=['evil']": ["evil"],
    "if req.append('evil') is None: pass": ["benign", "evil"],
    "x = not req.append('evil')": ["benign", "evil"],
    "x = req.append('evil') or 1": ["benign", "evil"],
    "x = [req.append('evil')][0]": ["benign", "evil"],
    "d={}\nd.setdefault('a',req).append('evil')": ["benign", "evil"],
    "d={}\nd.setdefault('a',req)\nd['a'].append('evil')": ["benign", "evil"],
    "d={1:req}\nd[1].append('evil')": ["benign", "evil"],
    "d={1:req}\nd.popitem()[1].append('evil')": ["benign", "evil"],
    "d=dict([('a',req)])\nd['a'].append('evil')": ["benign", "evil"],
    "d={'a':1}\nd.update(b=req)\nd['b'].append('evil')": ["benign", "evil"],
    "d={}|{'a':req}\nd['a'].append('evil')": ["benign", "evil"],
    "import collections\nd=collections.defaultdict(lambda: req)\nd['q'].append('evil')": ["benign", "evil"],
    "def w(f):\n  def i(*a): req.append('evil')\n  return i\n@w\ndef g(): pass\ng()": ["benign", "evil"],
    "try:\n  x\nexcept* NameError:\n  req.append('evil')": ["benign", "evil"],
    "def f():\n  try: return req\n  finally: req.append('evil')\nf()": ["benign", "evil"],
    "import threading\nt=threading.Thread(target=req.append,args=('evil',))\nt.start();t.join()": ["benign", "evil"],
    "v=globals()['req']\nv.append('evil')": ["benign", "evil"],
    "v=globals().get('req')\nv.append('evil')": ["benign", "evil"],
    "v=dict(globals())['req']\nv.append('evil')": ["benign", "evil"],
    "for k,v in list(globals().items()):\n  if k=='req': v.append('evil')": ["benign", "evil"],
    "x = globals().items()\nfor k,v in list(x):\n  if k=='req': v.append('evil')": ["benign", "evil"],
    "req.clear()\nreq.insert(0,'evil')": ["evil"],
    "req = req and ['evil']": ["evil"],
    "req = [r.replace('benign','evil') for r in req]": ["evil"],
    "x=type('X',(),{'f':lambda s: req.append('evil')})\nx().f()": ["benign", "evil"],
    "import re\nre.sub('a',lambda m: req.append('evil') or '','a')": ["benign", "evil"],
    "def f(a,b=[]):\n  b.append(a)\n  return b\nreq=f('evil')\nreq=f('x')": ["evil", "x"],
    "a=b=['benign']\nif True:\n  b=a\nb.append('evil')\nreq=a": ["benign", "evil"],
}
"""Code between START and END, and the requirements that Python hands to setup() then."""
READING = (
    "print(req, len(req), ', '.join(req))",
    "other = [name for name in req]",
    "other = list(req) + req[1:]\nother.append('more')",
    "other = req.copy()\nother.append('more')",
    "def show():\n  return len(req)\nshow()",
    "version = '%(name)s' % globals()",
    "version = globals()['version']",
    "'name' in locals()",
    "'{x}'.format(**vars())",
    "class Build:\n  def run(self):\n    req.append('never')",
    "def never():\n  req.append('never')",
    "import sys\nsys.dont_write_bytecode = True",
    "import builtins\nbuiltins.__DEMO_SETUP__ = True",
    "from os import *",
    "exec(open('version.py').read(), {})",
    "about = {}\nexec(open('version.py').read(), about)",
    "for name in req:\n  print(name)",
    "import re\npattern = re.compile('a')",
)
"""Code that changes nothing."""


def requires(script: str) -> list[str] | None:
    arguments = read_setup_script(script)
    return None if arguments.install_requires is None else list(arguments.install_requires)


def test_what_changes_a_value_leaves_it_unknown_or_is_followed(subtests: pytest.Subtests):
    for script, truth in CHANGING.items():
        with subtests.test(script=script):
            assert requires(START + script + END) in (None, truth)


def test_what_only_reads_leaves_a_value_known(subtests: pytest.Subtests):
    for script in READING:
        with subtests.test(script=script):
            assert requires(START + script + END) == ["benign"]


def test_another_setup_gets_arguments_that_are_unknown(subtests: pytest.Subtests):
    scripts = (
        "from conf import setup",
        "import setuptools\nsetuptools.setup = other",
        "import setuptools\nx = setuptools.dist\nx.Distribution.finalize = other",
        "import setuptools.dist as d\nd.Distribution.parse = property(other)",
        "from setuptools import dist\nsetattr(dist, 'x', 1)",
        "from setuptools import dist\ndist.Distribution.x += 1",
        "from setuptools import dist\nfor dist.x in range(3): pass",
        "from setuptools import dist\nwith open('x') as dist.x: pass",
        "from setuptools import dist\ndef patch():\n  dist.x = 1\nother(patch)",
        "__import__('setuptools').setup = other",
        "import sys\nsys.modules['setuptools'] = other",
        "globals()['setup'] = other",
        "from conf import *",
    )
    for script in scripts:
        with subtests.test(script=script):
            found = read_setup_script(f"{START}{script}{END}")
            assert (found.packages, found.install_requires, found.is_complete) == (None, None, False)


def test_a_class_of_its_own_that_makes_the_metadata_is_seen(subtests: pytest.Subtests):
    for argument, changes in (
        ("distclass=D", True),
        ("cmdclass={'egg_info': D}", True),
        ("cmdclass={'test': D}", False),
    ):
        with subtests.test(argument=argument):
            script = f"{START}class D: pass\nsetup(install_requires=req, {argument})\n"
            assert read_setup_script(script).changes_metadata is changes
